// Search without a server. A browser starts no worker for a page that was opened from a folder (file://),
// so this runs the worker's script in a hidden frame instead. On http(s):// it does nothing.
"use strict";
if (location.protocol === "file:") {
  // The theme's search script looks for this name in its parent.
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      const script = document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      const own = "self.postMessage = (data) => parent.postMessage({ worker: self.name, data }, '*')";
      this.frame.srcdoc = `<script>${own}<\/script>${script.outerHTML}`;
      this.frame.name = `worker-${Math.random()}`;
      window.addEventListener("message", (event) => this.receive(event));
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve));
      document.body.append(this.frame);
    }

    receive(event) {
      if (event.data?.worker !== this.frame.name) return;
      const message = new MessageEvent("message", { data: event.data.data });
      this.dispatchEvent(message);
      this.onmessage?.(message);
    }

    async postMessage(data) {
      await this.ready;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
