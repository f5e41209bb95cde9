// Everything that the page does in the browser: log in, follow the stream, send forms, and obey keys.
"use strict";

const HEADERS = { "X-Iterdev": "1" };
const LOST_AFTER = 3000; // milliseconds
const body = document.body;
const byId = (id) => document.getElementById(id);

function post(address, fields) {
  return fetch(address, { method: "POST", headers: HEADERS, body: new URLSearchParams(fields), redirect: "error" });
}

// --- login: the token is behind the #, which no server ever sees ---

async function logIn() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  const response = await post("/login", { token });
  if (response.ok) location.replace("/");
  else byId("login-state").textContent = `Not logged in: ${(await response.json()).error}.`;
}

// --- times: the server writes when, the browser how long ago ---

function ago(seconds) {
  if (seconds < 60) return "just now";
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];
  const [size, unit] = units.find(([one]) => seconds >= one);
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

function elapsed(seconds) {
  const [minutes, rest] = [Math.floor(seconds / 60), Math.floor(seconds % 60)];
  return `${minutes}:${String(rest).padStart(2, "0")}`;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function showTimes() {
  const now = Date.now() / 1000;
  for (const one of document.querySelectorAll("time[data-ago]")) setText(one, ago(Math.max(now - one.dataset.ago, 0)));
  for (const one of document.querySelectorAll("time[data-since]")) {
    setText(one, elapsed(Math.max(now - one.dataset.since, 0)));
  }
}

// --- the stream: parts of the page that changed ---

const title = document.title;
let source = null;
let lostAt = null;

function showNeeds() {
  const count = Number(document.querySelector("[data-needs]")?.dataset.needs ?? 0);
  document.title = count ? `(${count}) ${title}` : title;
}

function showState(state) {
  const live = byId("live");
  if (!live) return;
  live.dataset.state = state;
  setText(live.querySelector(".word"), state);
}

const KEEP = {
  // What the person did to the page stays: open details, what was typed, and texts that the browser wrote.
  beforeAttributeUpdated: (name, element) =>
    !(name === "open" && (element.tagName === "DETAILS" || element.tagName === "DIALOG")) &&
    !(name === "data-state" && element.id === "live"),
  beforeNodeMorphed: (before, after) => {
    if (before.dataset && "keep" in before.dataset) return false;
    if (before.nodeName === "TIME" && after.nodeName === "TIME") return !sameTime(before, after);
    return !(before.id === "live" && after.id === "live");
  },
};
const sameTime = (one, other) => one.dataset.ago === other.dataset.ago && one.dataset.since === other.dataset.since;

function apply(patch) {
  const whole = byId(`part-${patch.part}`);
  if (!whole) return location.reload();
  const part = whole.querySelector("[data-grows]") ?? whole;
  const atEnd = isAtEnd(part);
  if (patch.added !== undefined) {
    part.insertAdjacentHTML("beforeend", patch.added);
  } else {
    Idiomorph.morph(part, patch.html, { morphStyle: "innerHTML", ignoreActiveValue: true, callbacks: KEEP });
  }
  if ("grows" in part.dataset) grown(part, atEnd);
  showTimes();
  showNeeds();
  showRow();
}

// --- the output of an agent: its end is shown until the person scrolls up or says otherwise ---

const logs = () => [...document.querySelectorAll("[data-grows]")];
const isAtEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 24;
const toEnd = (log) => (log.scrollTop = log.scrollHeight);

const grown = (log, wasAtEnd) => (wasAtEnd ? toEnd(log) : showFollowing(log, "new lines"));

function showFollowing(log, otherwise = "follow") {
  const button = document.querySelector("[data-follow-toggle]");
  if (!button) return;
  button.setAttribute("aria-pressed", isAtEnd(log));
  setText(button, isAtEnd(log) ? "following" : otherwise);
}

function toggleFollow(log = logs()[0]) {
  if (isAtEnd(log)) log.scrollTop -= 48;
  else toEnd(log);
}

document.addEventListener("scroll", (event) => event.target.dataset?.grows === "" && showFollowing(event.target), true);

function connect() {
  if (source || document.hidden || !("live" in body.dataset)) return;
  source = new EventSource(`/events?${new URLSearchParams({ view: body.dataset.view, mark: body.dataset.mark })}`);
  source.onopen = () => {
    lostAt = null;
    byId("lost").hidden = true;
    showState("live");
  };
  source.onerror = () => {
    lostAt ??= new Date();
    setTimeout(showLost, LOST_AFTER);
    if (source?.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(connect, LOST_AFTER);
    }
  };
  source.addEventListener("patch", (event) => {
    // Any later stream has to send everything: the page no longer shows what its mark says.
    body.dataset.mark = "";
    apply(JSON.parse(event.data));
  });
  source.addEventListener("reload", () => location.reload());
}

function showLost() {
  if (!lostAt) return;
  showState("lost");
  byId("lost").textContent = `Connection lost since ${lostAt.toLocaleTimeString()}. What you see may be old.`;
  byId("lost").hidden = false;
}

function disconnect() {
  // A browser has six connections to a server for all of its tabs, so a hidden one gives its own back.
  source?.close();
  source = null;
  lostAt = null;
  showState("still");
}

// --- forms ---

async function send(form, button) {
  const fields = new FormData(form, button);
  const problem = form.querySelector(".problem");
  for (const one of form.elements) if (one.type === "submit") one.disabled = true;
  try {
    const response = await post(form.action, fields);
    const answer = await response.json();
    if (response.ok) return location.assign(answer.go_to);
    if (answer.look_again) {
      const address = new URL(location.href);
      address.searchParams.set("moved", "1");
      return location.replace(address);
    }
    problem.textContent = [answer.error, answer.hint].filter(Boolean).join(" · ");
    for (const row of form.querySelectorAll("tr[data-row]")) {
      row.classList.toggle("wrong", row.dataset.row === String(answer.row));
    }
  } catch {
    problem.textContent = "iterdev web does not answer; was it stopped?";
  }
  for (const one of form.elements) if (one.type === "submit") one.disabled = false;
}

// What the server would say to a form as it is filled in now.
let soon = null;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-preview]");
  if (!form) return;
  clearTimeout(soon);
  soon = setTimeout(async () => {
    const response = await fetch(`${form.action}?${new URLSearchParams(new FormData(form))}`);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const id = `part-${form.dataset.preview}`;
    Idiomorph.morph(byId(id), page.getElementById(id).innerHTML, { morphStyle: "innerHTML" });
  }, 300);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  event.preventDefault();
  send(form, event.submitter);
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("followToggle" in button.dataset) toggleFollow();
  if (button.dataset.dialog) byId(button.dataset.dialog).showModal();
  if (button.dataset.copy) {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  }
});

// --- keys: the table is in the dialog that explains them ---

let pressed = "";
let current = null; // the address of the row that j and k have reached
let reached = null; // the finding or the match that n and N have reached

const rows = () => [...document.querySelectorAll(".list a.row")];

function showRow() {
  for (const one of rows()) one.closest("tr, article, li").classList.toggle("current", one.href === current);
}

function move(step) {
  const all = rows();
  if (!all.length) return;
  const place = all.findIndex((one) => one.href === current) + step;
  const next = all[Math.min(Math.max(place, 0), all.length - 1)];
  current = next.href;
  next.focus();
  showRow();
}

function jump(step) {
  const all = [...document.querySelectorAll(".finding, .matches a")];
  const place = all.indexOf(document.activeElement.closest(".finding") ?? reached) + step;
  reached = all[(place + all.length) % all.length];
  reached?.focus();
  if (reached?.hash) reached.click();
}

const DO = {
  keys: () => byId("keys").showModal(),
  filter: () => document.querySelector("[data-filter]")?.focus(),
  down: () => move(1),
  up: () => move(current ? -1 : 1),
  answer: () => document.querySelector('a[href*="/q/"], form[action*="/q/"] button')?.focus(),
  "next finding": () => jump(1),
  "previous finding": () => jump(-1),
  comment: () => document.querySelector("[data-comment]")?.focus(),
  "previous round": () => document.querySelector("a[data-round=previous]")?.click(),
  "next round": () => document.querySelector("a[data-round=next]")?.click(),
  follow: () => document.querySelector("[data-follow-toggle]")?.click(),
  "edit plan": () => document.querySelector('a[href$="/plan"]')?.click(),
  choose: (key) => document.querySelector(`[data-number="${key}"]`)?.click(),
};

function obey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.matches("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]");
  if (typing && event.key === "Escape") event.target.blur();
  if (typing || document.querySelector("dialog[open]")) return;
  const table = [...document.querySelectorAll("#keys tr[data-keys]")];
  const words = [pressed && `${pressed} ${event.key}`, event.key].filter(Boolean);
  pressed = table.some((row) => row.dataset.keys.split("|").some((one) => one.startsWith(`${event.key} `)))
    ? event.key : "";
  const row = words.map((word) => table.find((one) => one.dataset.keys.split("|").includes(word))).find(Boolean);
  if (!row) return;
  if (row.dataset.href) location.assign(row.dataset.href);
  else if (DO[row.dataset.action]) DO[row.dataset.action](event.key);
  else return;
  pressed = "";
  event.preventDefault();
}

function filterKeys(event) {
  const text = event.target.value.toLowerCase();
  for (const row of document.querySelectorAll("#keys tr[data-keys]")) {
    row.hidden = !row.textContent.toLowerCase().includes(text);
  }
}

if ("login" in body.dataset) {
  logIn();
} else {
  document.addEventListener("keydown", obey);
  byId("keys-filter").addEventListener("input", filterKeys);
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  showTimes();
  showNeeds();
  if (!location.hash) logs().forEach(toEnd);
  setInterval(() => document.hidden || showTimes(), 1000);
  connect();
}
