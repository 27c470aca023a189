// A page that was opened from a disk may start no worker, and the site's search is one: a hidden frame stands in for it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.waiting = [];
      const load = (source) =>
        new Promise((done, failed) => {
          const script = frame.contentDocument.createElement("script");
          script.src = source;
          script.onload = done;
          script.onerror = failed;
          frame.contentDocument.body.append(script);
        });
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = async (...sources) => {
        for (const source of sources) await load(source);
      };
      load(new URL(url, document.baseURI)).then(() => {
        for (const data of this.waiting) this.deliver(data);
        this.waiting = null;
      });
    }

    postMessage(data) {
      this.waiting ? this.waiting.push(data) : this.deliver(data);
    }

    deliver(data) {
      this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
