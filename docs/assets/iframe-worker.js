// Search from disk. Browsers refuse to start a worker on a page that was opened as a file; there, a hidden frame does
// what the worker would do. On a web server this script changes nothing.
(function () {
  if (window.location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      this.inner = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!DOCTYPE html><title>search</title>";
      frame.addEventListener("load", () => this.start(frame, String(url)), { once: true });
      // The page's script may ask for a worker before there is a body.
      (document.body || document.documentElement).append(frame);
      this.frame = frame;
    }

    start(frame, url) {
      const inner = frame.contentWindow;
      // In a worker, postMessage answers the page; in a frame it would talk to itself.
      inner.postMessage = (data) => this.answer(data);
      const script = inner.document.createElement("script");
      script.src = url;
      script.addEventListener("load", () => {
        this.inner = inner;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
      script.addEventListener("error", () => this.dispatchEvent(new Event("error")));
      inner.document.head.append(script);
    }

    postMessage(data) {
      if (this.inner === null) this.waiting.push(data);
      else this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
    }

    answer(data) {
      const event = new MessageEvent("message", { data });
      if (typeof this.onmessage === "function") this.onmessage(event);
      this.dispatchEvent(event);
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
