// Flame graphs: a click on a bar widens it to the whole picture; a click on a bar above it, or Escape, goes back.
(function () {
  document.querySelectorAll(".flame svg").forEach(function (picture) {
    const wide = picture.viewBox.baseVal.width;
    const bars = Array.from(picture.querySelectorAll("g.bar"), function (group) {
      const name = group.dataset.name;
      const label = group.querySelector("text");
      const box = group.querySelector("rect");
      return { group, box, name, label, at: +group.dataset.at, share: +group.dataset.share, ground: box.getAttribute("fill") };
    });
    function ink(ground) {
      const value = parseInt(ground.slice(1), 16);
      return 0.299 * (value >> 16) + 0.587 * ((value >> 8) & 255) + 0.114 * (value & 255) > 140 ? "#000000" : "#ffffff";
    }
    function show(from, share) {
      for (const bar of bars) {
        const left = Math.max(0, (bar.at - from) / share), right = Math.min(1, (bar.at + bar.share - from) / share);
        const room = (right - left) * wide;
        bar.group.style.display = room < 0.3 ? "none" : "";
        bar.box.setAttribute("x", left * wide);
        bar.box.setAttribute("width", Math.max(0.4, room - 0.6));
        if (room >= 34 && !bar.label) {
          bar.label = document.createElementNS("http://www.w3.org/2000/svg", "text");
          bar.label.setAttribute("y", +bar.box.getAttribute("y") + 13);
          bar.label.setAttribute("font-size", "11px");
          bar.label.setAttribute("fill", ink(bar.ground));
          bar.group.append(bar.label);
        }
        if (bar.label) {
          const letters = Math.floor((room - 8) / 5.9);
          bar.label.setAttribute("x", left * wide + 4);
          bar.label.textContent = room < 34 ? "" : bar.name.length > letters ? bar.name.slice(0, letters - 1) + "…" : bar.name;
        }
      }
    }
    for (const bar of bars) bar.group.addEventListener("click", () => show(bar.at, bar.share));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") show(0, 1); });
  });
})();
