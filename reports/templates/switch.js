// Shows one language of the page, and keeps the reader's place when it changes.
"use strict";
(() => {
  const root = document.documentElement;
  const buttons = [...document.querySelectorAll("[data-to]")];
  const show = (code) => {
    const chosen = buttons.find((button) => button.getAttribute("data-to") === code) || buttons[0];
    root.lang = chosen.lang;
    root.setAttribute("data-lang", chosen.getAttribute("data-to"));
    document.title = chosen.getAttribute("data-title");
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === chosen));
  };
  const keepingPlace = (change) => {
    const seen = () => [...document.querySelectorAll("[data-at]")].filter((element) => element.getClientRects().length > 0);
    const anchor = scrollY > 0 ? seen().find((element) => element.getBoundingClientRect().bottom > 0) : null;
    const name = anchor && anchor.getAttribute("data-at"), top = anchor && anchor.getBoundingClientRect().top;
    change();
    const twin = name && seen().find((element) => element.getAttribute("data-at") === name);
    if (twin) scrollBy({ top: twin.getBoundingClientRect().top - top, behavior: "instant" });
  };
  document.getElementById("languages").addEventListener("click", (event) => {
    const button = event.target.closest("[data-to]");
    if (!button) return;
    keepingPlace(() => show(button.getAttribute("data-to")));
    history.replaceState(null, "", `#lang=${button.getAttribute("data-to")}`);
  });
  show(new URLSearchParams(location.hash.slice(1)).get("lang") || root.getAttribute("data-lang"));
})();
