// What part of the drawing is seen: zooming and moving.

class View {
  constructor(drawing) {
    this.drawing = drawing;
    this.extent = { x: 0, y: 0, width: 1, height: 1 };
    this.rectangle = { ...this.extent };
    this.hasMoved = false; // since the button went down: then its release is no click
    drawing.addEventListener("wheel", (event) => this.#turnWheel(event), { passive: false });
    drawing.addEventListener("pointerdown", (event) => this.#startMoving(event));
  }

  // Show the left end of a tree at a size that can be read.
  open(extent) {
    this.extent = extent;
    const { width, height } = this.drawing.getBoundingClientRect();
    const scale = Math.min(1, Math.max(0.55, Math.min(width / extent.width, height / extent.height)));
    const y = extent.y + (extent.height - height / scale) / 2;
    this.#show({ x: extent.x, y, width: width / scale, height: height / scale });
  }

  showAll() {
    this.#show({ ...this.extent });
  }

  // Zoom by a factor, above 1 to see less and larger; `centre` stays where it is.
  zoom(factor, centre = this.#centre()) {
    const own = this.rectangle;
    this.#show({
      x: centre.x - (centre.x - own.x) / factor,
      y: centre.y - (centre.y - own.y) / factor,
      width: own.width / factor,
      height: own.height / factor,
    });
  }

  // Move as little as it takes to see the box of a node.
  reveal({ x, y }) {
    const own = { ...this.rectangle };
    own.x = Math.min(own.x, x - 20);
    own.x = Math.max(own.x, x + BOX.width + 20 - own.width);
    own.y = Math.min(own.y, y - 20);
    own.y = Math.max(own.y, y + BOX.height + 20 - own.height);
    this.#show(own);
  }

  #centre() {
    const { x, y, width, height } = this.rectangle;
    return { x: x + width / 2, y: y + height / 2 };
  }

  #show(rectangle) {
    this.rectangle = rectangle;
    const { x, y, width, height } = rectangle;
    this.drawing.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  }

  // Units of the drawing that a pixel of the screen is.
  #unit() {
    const { width, height } = this.drawing.getBoundingClientRect();
    return Math.max(this.rectangle.width / width, this.rectangle.height / height);
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
    const start = { ...this.rectangle };
    const unit = this.#unit();
    const move = (moved) => {
      const [right, down] = [moved.clientX - event.clientX, moved.clientY - event.clientY];
      if (Math.hypot(right, down) < 4) return; // a hand is not still while it clicks
      this.hasMoved = true;
      this.drawing.classList.add("moving");
      this.#show({ ...start, x: start.x - right * unit, y: start.y - down * unit });
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
