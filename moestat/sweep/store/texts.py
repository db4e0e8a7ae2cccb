"""Texts that many rows of a store share: each is stored once, with a digest, under a number."""

from __future__ import annotations

import sqlite3

from moestat.sweep.spec.identity import digest


class Texts:
    """The texts of a store.

    Parameters
    ----------
    connection : sqlite3.Connection
        The store.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.sound: dict[int, str] = {}
        """Texts as they were written, by number."""
        self._largest = -1
        for number, text, written in connection.execute("SELECT number, text, digest FROM texts"):
            self._largest = max(self._largest, number)
            if digest([number, str(text)]) == written:
                self.sound[number] = text
        self._numbers = {text: number for number, text in self.sound.items()}

    def number_of(self, text: str) -> int:
        """The number of a text, which is written if it is new, in the caller's transaction."""
        found = self._numbers.get(text)
        if found is None:
            found = self._largest = self._largest + 1
            entry = (found, text, digest([found, text]))
            self._connection.execute("INSERT INTO texts VALUES (?, ?, ?)", entry)
            self.sound[found] = text
            self._numbers[text] = found
        return found
