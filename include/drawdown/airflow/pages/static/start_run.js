/* A form of class "start-run" starts a run or a backfill of a DAG by Airflow's own API, with the rights of
   whoever looks. Its data: `to`, the address that takes `body`; `created`, what to say then; `shown`, the page
   of what was created, for a run without its id; `reason`, the key of `conf` that gets the field "why". */
(function () {
  function say(output, text, address) {
    output.textContent = text;
    if (!address) { return; }
    var link = document.createElement("a");
    link.className = "out";
    link.href = address;
    link.textContent = "Look at it in Airflow";
    output.append(" ", link);
  }
  function why(answer, status) {
    var detail = answer && answer.detail;
    return typeof detail === "string" ? detail : detail ? JSON.stringify(detail) : "HTTP " + status;
  }
  function start(form, button, output) {
    var body = JSON.parse(form.dataset.body);
    if (form.dataset.reason) { body.conf[form.dataset.reason].why = form.elements.why.value; }
    button.disabled = true;
    say(output, "Starting…");
    return fetch(form.dataset.to, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Accept": "application/json" },
      body: JSON.stringify(body)
    }).then(function (response) {
      return response.json().catch(function () { return null; }).then(function (answer) {
        if (!response.ok) { throw new Error(why(answer, response.status)); }
        var run = answer.dag_run_id ? "/" + encodeURIComponent(answer.dag_run_id) : "";
        say(output, form.dataset.created, form.dataset.shown + run);
      });
    }).catch(function (error) {
      button.disabled = false;
      say(output, "Nothing was started: " + error.message);
    });
  }
  document.querySelectorAll("form.start-run").forEach(function (form) {
    var button = form.querySelector("button"), output = form.querySelector("output");
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      start(form, button, output);
    });
  });
})();
