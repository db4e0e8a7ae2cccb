"""Sweeps of networks: accuracy and routing after training on clustered patches."""

from __future__ import annotations

from moestat.sweep.kinds.kind import Kind
from moestat.sweep.kinds.network.analysis import NetworkSummary, summarise_networks
from moestat.sweep.kinds.network.cell import measure_network
from moestat.sweep.kinds.network.display import draw_networks, network_page, networks_table
from moestat.sweep.kinds.network.spec import KEYS, NetworkSpec, parse_networks
from moestat.sweep.kinds.runs.cell import measured
from moestat.sweep.kinds.runs.pages import page_writer

KIND = Kind[NetworkSpec, NetworkSummary](
    keys=KEYS,
    parse=parse_networks,
    run_cell=measured(measure_network),
    summarise=summarise_networks,
    table=networks_table,
    draw=draw_networks,
    page=network_page,
    write_report=page_writer(summarise_networks, draw_networks, network_page),
)
