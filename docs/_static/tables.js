/* Tables with many rows have a field above them: only rows that hold all of its words are shown. */
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    const rows = [...table.querySelectorAll("tbody tr")];
    if (rows.length < 60) continue;
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = `Search ${rows.length} rows`;
    field.setAttribute("aria-label", field.placeholder);
    field.style.cssText = "width: 100%; padding: .4em; margin: .5em 0; font: inherit";
    const texts = rows.map((row) => row.textContent.toLowerCase());
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      rows.forEach((row, at) => { row.hidden = !words.every((word) => texts[at].includes(word)); });
    });
    (table.closest(".table-wrapper") ?? table).before(field);
  }
});
