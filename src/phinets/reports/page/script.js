"use strict";
/* Tables sort by their headers, claims are filtered by verdict, links open what they lead to; all of it is read without. */
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  const valueOf = (cell) => {
    const text = (cell.dataset.v ?? cell.textContent).trim();
    const number = Number(text);
    return text === "" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  };

  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

  function sort(table, column, way) {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, at: Number(row.dataset.at), value: valueOf(row.cells[column]) }));
    const sign = way === "descending" ? -1 : 1;
    rows.sort((a, b) => {
      if (way === "none") return a.at - b.at;
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.at - b.at;
      return sign * compare(a.value, b.value) || a.at - b.at;
    });
    body.append(...rows.map(({ row }) => row));
  }

  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
  for (const table of all("table.sortable")) {
    [...table.tBodies[0].rows].forEach((row, n) => { row.dataset.at = n; });
    const headers = [...table.tHead.rows[0].cells];
    headers.forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      if (!button.textContent.trim()) button.setAttribute("aria-label", "name");
      header.append(button);
      header.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const way = NEXT[header.getAttribute("aria-sort")];
        for (const other of headers) other.setAttribute("aria-sort", "none");
        header.setAttribute("aria-sort", way);
        sort(table, column, way);
      });
    });
  }

  for (const filter of all(".filter")) {
    const overview = filter.parentElement;
    const status = overview.querySelector(".status");
    const rows = all("tbody tr", overview);
    filter.hidden = false;
    filter.addEventListener("click", (event) => {
      const chosen = event.target.closest("button");
      if (!chosen) return;
      for (const button of all("button", filter)) button.setAttribute("aria-pressed", String(button === chosen));
      const wanted = chosen.dataset.verdict;
      for (const row of rows) row.hidden = wanted !== "" && row.dataset.verdict !== wanted;
      const shown = rows.filter((row) => !row.hidden).length;
      status.hidden = wanted === "";
      status.textContent = `${shown} of ${rows.length} claims are shown.`;
    });
  }

  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let box = target; box; box = box.parentElement?.closest("details")) if (box.tagName === "DETAILS") box.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const box of closed) box.open = true;
  });
  addEventListener("afterprint", () => { for (const box of closed) box.open = false; });

  const button = document.getElementById("theme");
  const words = { "": "as the system", light: "light", dark: "dark" };
  const order = ["", "light", "dark"];
  const remembered = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("phinets-theme") ?? "";
      localStorage.setItem("phinets-theme", value);
    } catch { /* a file that may remember nothing */ }
    return "";
  };
  function dress(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    button.lastElementChild.textContent = words[theme];
  }
  let theme = order.includes(remembered()) ? remembered() : "";
  dress(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    remembered(theme);
    dress(theme);
  });

  const narrow = matchMedia("(max-width: 900px)");
  const toc = document.querySelector(".toc");
  const fold = () => { toc.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();

  const links = new Map(all(".toc a").map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) links.get(entry.target.id)?.classList.toggle("here", entry.isIntersecting);
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const id of links.keys()) {
    const place = document.getElementById(id);
    if (place?.matches(".target, .overview, #own, #others, #runs, #reading")) seen.observe(place);
  }
})();
