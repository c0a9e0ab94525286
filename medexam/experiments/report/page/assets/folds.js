"use strict";

// What is folded opens when the address or the printer asks for it, and tables say that they scroll.
(() => {
  const follow = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", follow);
  follow();

  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("#more details, .detail details")) folded.open = true;
  });

  const look = new ResizeObserver((found) => {
    for (const { target } of found) {
      const hint = target.parentElement.querySelector(".hint");
      if (hint) hint.hidden = target.scrollWidth <= target.clientWidth + 1;
    }
  });
  for (const wide of document.querySelectorAll(".wide")) look.observe(wide);
})();
