// What part of the drawing is seen: zooming and moving.

// Pixels of the screen for each unit of the drawing, as a tree is opened: texts can be read.
const SCALES = { least: 1, largest: 1.2 };

class View {
  constructor(drawing) {
    this.drawing = drawing;
    this.extent = { x: 0, y: 0, width: 1, height: 1 };
    this.corner = { x: 0, y: 0 };
    this.scale = 1;
    this.hasMoved = false; // since the button went down: then its release is no click
    drawing.addEventListener("wheel", (event) => this.#turnWheel(event), { passive: false });
    drawing.addEventListener("pointerdown", (event) => this.#startMoving(event));
    // the panel beside it, or a window, takes room or gives it back
    new ResizeObserver(() => this.#resize()).observe(drawing);
  }

  // Show a tree at a size that can be read: whole if it fits, else what is around its root.
  open(extent, root) {
    [this.extent, this.root] = [extent, root];
    this.isAsOpened = true;
    this.scale = Math.min(SCALES.largest, Math.max(SCALES.least, this.#fittingScale()));
    const { height } = this.#size();
    const lowest = extent.y + extent.height - height;
    const y = lowest < extent.y
      ? (extent.y + lowest) / 2
      : Math.min(Math.max(root.y + (BOX.height - height) / 2, extent.y), lowest);
    this.#show({ x: extent.x, y });
  }

  #resize() {
    if (this.isAsOpened) this.open(this.extent, this.root);
    this.#show(this.#nearest(this.corner));
  }

  showAll() {
    this.isAsOpened = false;
    this.scale = this.#fittingScale();
    const { extent } = this;
    const { width, height } = this.#size();
    this.#show({ x: extent.x + (extent.width - width) / 2, y: extent.y + (extent.height - height) / 2 });
  }

  // Zoom by a factor, above 1 to see less and larger; `centre` stays where it is.
  zoom(factor, centre = this.#centre()) {
    const { x, y } = this.corner;
    this.isAsOpened = false;
    this.scale *= factor;
    this.#show({ x: centre.x - (centre.x - x) / factor, y: centre.y - (centre.y - y) / factor });
  }

  // Move as little as it takes to see the box of a node, and some room to its right.
  reveal(place, room = 20) {
    this.revealed = { ...place, room };
    this.#show(this.#nearest(this.corner));
  }

  // The nearest corner from which the box of the last node that was revealed is seen.
  #nearest({ x, y }) {
    if (this.revealed === undefined) return { x, y };
    const { width, height } = this.#size();
    const { x: left, y: top, room } = this.revealed;
    return {
      x: Math.max(Math.min(x, left - 20), left + BOX.width + room - width),
      y: Math.max(Math.min(y, top - 20), top + BOX.height + 20 - height),
    };
  }

  #fittingScale() {
    const { width, height } = this.drawing.getBoundingClientRect();
    return Math.min(width / this.extent.width, height / this.extent.height);
  }

  // What is seen, in units of the drawing.
  #size() {
    const { width, height } = this.drawing.getBoundingClientRect();
    return { width: width / this.scale, height: height / this.scale };
  }

  #centre() {
    const { width, height } = this.#size();
    return { x: this.corner.x + width / 2, y: this.corner.y + height / 2 };
  }

  #show(corner) {
    this.corner = corner;
    const { width, height } = this.#size();
    this.drawing.setAttribute("viewBox", `${corner.x} ${corner.y} ${width} ${height}`);
  }

  #turnWheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // without, the wheel scrolls the page
    event.preventDefault();
    const inverse = this.drawing.getScreenCTM().inverse();
    const centre = new DOMPoint(event.clientX, event.clientY).matrixTransform(inverse);
    this.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, centre);
  }

  #startMoving(event) {
    if (event.button !== 0) return;
    this.hasMoved = false;
    const start = { ...this.corner };
    const move = (moved) => {
      const [right, down] = [moved.clientX - event.clientX, moved.clientY - event.clientY];
      if (Math.hypot(right, down) < 4) return; // a hand is not still while it clicks
      this.hasMoved = true;
      this.isAsOpened = false;
      this.drawing.classList.add("moving");
      this.#show({ x: start.x - right / this.scale, y: start.y - down / this.scale });
    };
    const stop = () => {
      this.drawing.classList.remove("moving");
      window.removeEventListener("pointermove", move);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", stop, { once: true });
    window.addEventListener("pointercancel", stop, { once: true });
  }
}
