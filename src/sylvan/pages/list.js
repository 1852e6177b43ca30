// A long table becomes a list: search, choose, sort, and as many rows as can be read. Its other rows are in <noscript>,
// so that the browser need not lay them out; without this script they are a plain table.
"use strict";
for (const table of document.querySelectorAll("table.list")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], box = table.closest(".scroll");
  const step = body.rows.length, chosen = Number(table.dataset.choose);
  const make = (tag, about = {}, ...inside) => {
    const made = Object.assign(document.createElement(tag), about);
    made.append(...inside);
    return made;
  };
  const whole = count => count.toLocaleString("en");
  const told = row => row.cells[chosen].title || row.cells[chosen].textContent.trim();
  const {compare} = new Intl.Collator("en", {numeric: true});
  const number = text => parseFloat(text.replace(/,/g, "").replace("\u2212", "-"));
  const hidden = box.parentNode.querySelector("noscript");
  const others = hidden
    ? new DOMParser().parseFromString(hidden.textContent, "text/html").querySelector("tbody").rows : [];
  const rows = [...body.rows, ...others].map((row, at) => ({row, at, name: told(row), text: null}));
  let found = rows, limit = step, sorted = -1, down = false, waiting = 0;

  const search = make("input", {type: "search", autocomplete: "off"});
  const counts = new Map();
  for (const each of rows) counts.set(each.name, (counts.get(each.name) || 0) + 1);
  const option = (value, text, count) => make("option", {value, textContent: `${text} (${whole(count)})`});
  const names = [...counts.keys()].sort(compare);
  const select = make("select", {}, option("", "all", rows.length));
  select.append(...names.map((name, at) => option(at + 1, name, counts.get(name))));
  const status = make("output", {className: "note"});
  const more = make("button", {type: "button"});
  const title = heads[chosen].textContent.trim();
  const tools = make("div", {className: "tools"},
    make("label", {}, "Find ", search), make("label", {}, `${title} `, select), status);

  const show = () => {
    const shown = found.slice(0, limit);
    body.replaceChildren(...shown.map(each => each.row));
    const all = rows.length === found.length ? "" : `${found.length ? "," : ";"} ${whole(rows.length)} in all`;
    const told = found.length ? `${whole(shown.length)} of ${whole(found.length)} shown` : "Nothing matches";
    status.textContent = told + all;
    box.hidden = !found.length;
    more.hidden = shown.length === found.length;
    more.textContent = `Show ${Math.min(4 * step, found.length - shown.length)} more`;
  };
  const find = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), name = names[select.value - 1];
    found = rows.filter(each => {
      if (name !== undefined && each.name !== name) return false;
      if (words.length && each.text === null) each.text = each.row.textContent.toLowerCase();
      return words.every(word => each.text.includes(word));
    });
    limit = step;
    show();
  };
  const sort = column => {
    down = sorted === column ? !down : heads[column].classList.contains("number") && column > 0;
    sorted = column;
    const cell = each => each.row.cells[column].textContent.trim();
    const keyed = rows.map(each => [heads[column].classList.contains("number") || column === 0
      ? number(cell(each)) : cell(each), each]);
    const order = (a, b) => typeof a === "string" ? compare(a, b) : a - b;
    keyed.sort(([a, one], [b, other]) => {
      if (a !== a || b !== b) return (a !== a) - (b !== b) || one.at - other.at;
      return (down ? order(b, a) : order(a, b)) || one.at - other.at;
    });
    rows.splice(0, rows.length, ...keyed.map(([, each]) => each));
    heads.forEach((head, at) => at === column
      ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    find();
  };

  heads.forEach((head, column) => {
    if (head.classList.contains("reasons")) return; // several lines have no order
    const button = make("button", {type: "button"}, ...head.childNodes);
    button.addEventListener("click", () => sort(column));
    head.replaceChildren(button);
  });
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(find, 120); });
  select.addEventListener("change", find);
  more.addEventListener("click", () => { limit += 4 * step; show(); });
  box.before(tools);
  box.after(make("div", {className: "tools"}, more));
  show();
}
