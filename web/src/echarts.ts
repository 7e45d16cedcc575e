// SPDX-License-Identifier: Apache-2.0
// The parts of Apache ECharts that the report uses.

import { BarChart, type BarSeriesOption, LineChart, type LineSeriesOption } from "echarts/charts";
import {
  AriaComponent,
  type AriaComponentOption,
  DataZoomSliderComponent,
  type DataZoomComponentOption,
  GridComponent,
  type GridComponentOption,
  LegendPlainComponent,
  type LegendComponentOption,
  TitleComponent,
  type TitleComponentOption,
  TooltipComponent,
  type TooltipComponentOption,
} from "echarts/components";
import { type ComposeOption, init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

use([
  AriaComponent,
  BarChart,
  DataZoomSliderComponent,
  GridComponent,
  LegendPlainComponent,
  LineChart,
  SVGRenderer,
  TitleComponent,
  TooltipComponent,
]);

export type Option = ComposeOption<
  | AriaComponentOption
  | BarSeriesOption
  | DataZoomComponentOption
  | GridComponentOption
  | LegendComponentOption
  | LineSeriesOption
  | TitleComponentOption
  | TooltipComponentOption
>;
export type { BarSeriesOption, LineSeriesOption };
export { init };
