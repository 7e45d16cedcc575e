// SPDX-License-Identifier: Apache-2.0
// Draws rectangles, lines and texts on a canvas or as SVG.

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface TextStyle {
  color: string;
  align: "left" | "center" | "right";
  bold?: boolean;
  size?: number;
}

export interface Painter {
  /** All of one colour. */
  rects(rects: readonly Rect[], color: string, opacity?: number): void;
  outline(rects: readonly Rect[], color: string): void;
  line(x1: number, y1: number, x2: number, y2: number, color: string): void;
  /** `y` is the middle. */
  text(text: string, x: number, y: number, style: TextStyle): void;
  image(image: HTMLCanvasElement, at: Rect): void;
  /** What follows is cut to this; null ends it. */
  clip(area: Rect | null): void;
  textWidth(text: string): number;
}

const SIZE = 12;

export class CanvasPainter implements Painter {
  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly font: string,
  ) {
    context.font = `${SIZE}px ${font}`;
  }

  rects(rects: readonly Rect[], color: string, opacity = 1): void {
    this.context.fillStyle = color;
    this.context.globalAlpha = opacity;
    for (const { x, y, width, height } of rects) this.context.fillRect(x, y, width, height);
    this.context.globalAlpha = 1;
  }

  outline(rects: readonly Rect[], color: string): void {
    this.context.strokeStyle = color;
    this.context.lineWidth = 2;
    for (const { x, y, width, height } of rects) this.context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
  }

  line(x1: number, y1: number, x2: number, y2: number, color: string): void {
    this.context.strokeStyle = color;
    this.context.lineWidth = 1;
    this.context.beginPath();
    this.context.moveTo(x1, y1);
    this.context.lineTo(x2, y2);
    this.context.stroke();
  }

  text(text: string, x: number, y: number, style: TextStyle): void {
    this.context.font = `${style.bold ? "bold " : ""}${style.size ?? SIZE}px ${this.font}`;
    this.context.fillStyle = style.color;
    this.context.textAlign = style.align;
    this.context.textBaseline = "middle";
    this.context.fillText(text, x, y);
  }

  image(image: HTMLCanvasElement, at: Rect): void {
    this.context.imageSmoothingEnabled = image.height > at.height;
    this.context.drawImage(image, at.x, at.y, at.width, at.height);
  }

  clip(area: Rect | null): void {
    if (area === null) {
      this.context.restore();
      return;
    }
    this.context.save();
    this.context.beginPath();
    this.context.rect(area.x, area.y, area.width, area.height);
    this.context.clip();
  }

  textWidth(text: string): number {
    this.context.font = `${SIZE}px ${this.font}`;
    return this.context.measureText(text).width;
  }
}

const escape = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");
const n = (value: number): string => String(Math.round(value * 100) / 100);
const ANCHOR = { left: "start", center: "middle", right: "end" } as const;

export class SvgPainter implements Painter {
  private readonly parts: string[] = [];
  private clips = 0;
  private readonly measure = document.createElement("canvas").getContext("2d");

  constructor(private readonly font: string) {}

  private static path(rects: readonly Rect[]): string {
    return rects.map(({ x, y, width, height }) => `M${n(x)} ${n(y)}h${n(width)}v${n(height)}h${n(-width)}z`).join("");
  }

  rects(rects: readonly Rect[], color: string, opacity = 1): void {
    if (rects.length === 0) return;
    const faint = opacity < 1 ? ` fill-opacity="${n(opacity)}"` : "";
    this.parts.push(`<path fill="${color}"${faint} d="${SvgPainter.path(rects)}"/>`);
  }

  outline(rects: readonly Rect[], color: string): void {
    if (rects.length === 0) return;
    this.parts.push(`<path fill="none" stroke="${color}" stroke-width="2" d="${SvgPainter.path(rects)}"/>`);
  }

  line(x1: number, y1: number, x2: number, y2: number, color: string): void {
    this.parts.push(`<line x1="${n(x1)}" y1="${n(y1)}" x2="${n(x2)}" y2="${n(y2)}" stroke="${color}"/>`);
  }

  text(text: string, x: number, y: number, style: TextStyle): void {
    this.parts.push(
      `<text x="${n(x)}" y="${n(y)}" dy="0.35em" fill="${style.color}" font-size="${style.size ?? SIZE}"` +
        `${style.bold ? ' font-weight="bold"' : ""} text-anchor="${ANCHOR[style.align]}">${escape(text)}</text>`,
    );
  }

  image(image: HTMLCanvasElement, at: Rect): void {
    this.parts.push(
      `<image x="${n(at.x)}" y="${n(at.y)}" width="${n(at.width)}" height="${n(at.height)}" ` +
        `preserveAspectRatio="none" style="image-rendering: pixelated" href="${image.toDataURL("image/png")}"/>`,
    );
  }

  clip(area: Rect | null): void {
    if (area === null) {
      this.parts.push("</g>");
      return;
    }
    const id = `clip${++this.clips}`;
    this.parts.push(
      `<clipPath id="${id}"><rect x="${n(area.x)}" y="${n(area.y)}" width="${n(area.width)}" height="${n(area.height)}"/>` +
        `</clipPath><g clip-path="url(#${id})">`,
    );
  }

  textWidth(text: string): number {
    if (!this.measure) return text.length * 7;
    this.measure.font = `${SIZE}px ${this.font}`;
    return this.measure.measureText(text).width;
  }

  file(width: number, height: number): string {
    return (
      `<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}" font-family="${this.font}">\n${this.parts.join("\n")}\n</svg>\n`
    );
  }
}
