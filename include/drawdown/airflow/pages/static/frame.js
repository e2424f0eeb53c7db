/* Airflow shows pages in a frame that lets no link out. A link of class "out" is therefore followed by the
   window around it; without this script it opens inside the frame. The frame takes Airflow's own theme. */
(function () {
  var outer;
  try { outer = window.parent !== window && window.parent.document ? window.parent : null; } catch (e) { outer = null; }
  if (!outer) { return; }
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a.out");
    if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) { return; }
    event.preventDefault();
    var own = outer.document.createElement("a");
    own.href = link.href;
    outer.document.body.appendChild(own);
    own.click();
    own.remove();
  });
  function theme() {
    var root = outer.document.documentElement;
    var dark = root.classList.contains("dark") || root.dataset.theme === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }
  theme();
  new MutationObserver(theme).observe(outer.document.documentElement, { attributes: true });
})();
