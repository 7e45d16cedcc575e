// SPDX-License-Identifier: Apache-2.0
#include "results/write/figure.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "base/try.h"
#include "io/csv_field.h"
#include "io/file.h"
#include "results/write/output_file.h"

// NOLINTNEXTLINE(readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)
extern char** environ;  // of POSIX

namespace trainyard::results {
namespace {

constexpr std::array kSources{ValuesOf::kPaper, ValuesOf::kArtifact, ValuesOf::kOurs,
                              ValuesOf::kSound, ValuesOf::kTrace};
constexpr std::array<std::string_view, 5> kSourceColours{"#8c959f", "#009e73", "#0072b2", "#e69f00",
                                                         "#0072b2"};
// Okabe and Ito's: told apart by all kinds of sight.
constexpr std::array<std::string_view, 8> kColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                   "#56b4e9", "#d55e00", "#7f7f7f", "#000000"};

// Pixels.
constexpr int kPartWidth = 420;
constexpr std::size_t kMostInRow = 3;  // parts; four are two rows of two
constexpr int kWidest = 640;           // a single part
constexpr int kPlotHeight = 270;
constexpr int kLeft = 78;
constexpr int kRight = 16;
constexpr int kTop = 84;       // title, one line of the key, names of the parts
constexpr int kPartName = 26;  // above the second row
constexpr int kKeyLine = 20;
constexpr int kKeyTop = 44;
constexpr int kKeyMark = 14;
constexpr int kLetter = 7;  // width, about

std::string Quoted(std::string_view text) {
  return "\"" + base::ReplaceAll(base::ReplaceAll(std::string(text), "\\", "\\\\"), "\"", "\\\"") +
         "\"";
}

std::string CsvText(std::string_view text) {
  std::string field;
  io::AppendCsvField(text, field);
  return field;
}

bool HasValues(const FigureSeries& series) {
  return !series.points.empty() ||
         std::any_of(series.bars.begin(), series.bars.end(), [](const auto& bar) { return !!bar; });
}

// One field of axes.
struct Part {
  std::string name;
  std::vector<const FigureSeries*> series;
};

// Series of one source together, unless each source has only one: then they share the axes.
std::vector<Part> PartsOf(const Figure& figure) {
  std::vector<Part> parts;
  const bool single = std::all_of(figure.series.begin(), figure.series.end(),
                                  [](const FigureSeries& series) { return series.name.empty(); });
  for (const ValuesOf source : kSources) {
    const bool needs_no_name = single || source == ValuesOf::kTrace;
    Part part{.name = needs_no_name ? "" : std::string(Name(source)), .series = {}};
    for (const FigureSeries& series : figure.series) {
      if (series.values_of == source && HasValues(series)) {
        part.series.push_back(&series);
      }
    }
    if (part.series.empty()) {
      continue;
    }
    if (single && !parts.empty()) {
      parts.front().series.push_back(part.series.front());
    } else {
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

class Script {
 public:
  Script(const Figure& figure, const std::string& svg) : figure_(figure), parts_(PartsOf(figure)) {
    FindNames();
    FindExtent();
    FindLayout();
    Head(svg);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Plot(i);
    }
    text_ += "unset multiplot\n";
  }

  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  // A colour belongs to a name, whichever part it is in.
  void FindNames() {
    for (const Part& part : parts_) {
      for (const FigureSeries* series : part.series) {
        const std::string& name = KeyOf(*series);
        if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
          names_.push_back(name);
        }
      }
    }
  }

  [[nodiscard]] static std::string KeyOf(const FigureSeries& series) {
    return series.name.empty() ? std::string(Name(series.values_of)) : series.name;
  }

  [[nodiscard]] std::string_view ColourOf(const std::string& name) const {
    for (const ValuesOf source : kSources) {
      if (name == Name(source)) {
        return kSourceColours.at(static_cast<std::size_t>(source));
      }
    }
    const auto at = std::find(names_.begin(), names_.end(), name) - names_.begin();
    return kColours.at(static_cast<std::size_t>(at) % kColours.size());
  }

  void FindExtent() {
    for (const Part& part : parts_) {
      for (const FigureSeries* series : part.series) {
        for (const auto& bar : series->bars) {
          highest_ = std::max(highest_, bar.value_or(0));
        }
        for (const auto& range : series->ranges) {
          highest_ = std::max(highest_, range.second);
          ranged_ = true;
        }
        for (const auto& [x, y] : series->points) {
          highest_ = std::max(highest_, y);
          if (x > 0) {
            least_x_ = std::min(least_x_, x);
          }
          greatest_x_ = std::max(greatest_x_, x);
        }
      }
    }
    highest_ = highest_ > 0 ? highest_ : 1;
  }

  void FindLayout() {
    std::size_t letters = 0;
    for (const std::string& category : figure_.categories) {
      letters = std::max(letters, category.size());
    }
    const int parts = std::max(1, static_cast<int>(parts_.size()));
    columns_ = parts_.size() > kMostInRow ? 2 : parts;
    const int rows = (parts + columns_ - 1) / columns_;
    // As wide as three parts, or a single one.
    part_width_ = parts == 1 ? kWidest : rows == 1 ? kPartWidth : kPartWidth * 3 / 2;
    width_ = part_width_ * columns_;
    const auto room =
        (part_width_ - kLeft - kRight) / std::max(1, static_cast<int>(figure_.categories.size()));
    rotated_ = static_cast<int>(letters) * kLetter > room - 4;
    LayKey();
    // At 40 degrees.
    const int labels =
        rotated_ ? static_cast<int>(static_cast<double>(letters) * kLetter * 0.66) + 24 : 38;
    row_height_ = kPlotHeight + labels + (figure_.x_label.empty() ? 6 : 28);
    height_ = top_ + row_height_ + (rows - 1) * (row_height_ + kPartName);
  }

  // Names one after the other, in as many lines as they need.
  void LayKey() {
    std::vector<int> widths{0};  // of the lines
    std::vector<std::size_t> line_of;
    for (const std::string& name : names_) {
      const int width = kKeyMark + 8 + static_cast<int>(name.size()) * kLetter + 20;
      if (widths.back() > 0 && widths.back() + width > width_ - 20) {
        widths.push_back(0);
      }
      line_of.push_back(widths.size() - 1);
      key_.emplace_back(widths.back(), 0);
      widths.back() += width;
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      key_[i].first += (width_ - widths[line_of[i]]) / 2;
      key_[i].second = kKeyTop + static_cast<int>(line_of[i]) * kKeyLine;
    }
    top_ = kTop + static_cast<int>(widths.size() - 1) * kKeyLine;
  }

  [[nodiscard]] double X(int pixel) const { return static_cast<double>(pixel) / width_; }
  [[nodiscard]] double Y(int from_top) const { return 1 - static_cast<double>(from_top) / height_; }

  void Head(const std::string& svg) {
    Line("# gnuplot: {}", base::ReplaceAll(figure_.title, "\n", " "));
    Line("set terminal svg noenhanced size {},{} dynamic font 'Arial,13' background rgb 'white'",
         width_, height_);
    Line("set output {}", Quoted(svg));
    Line("set encoding utf8");
    Line("set datafile missing '?'");
    Line("set border 3 lc rgb '#5b6470'");
    Line("set tics nomirror out textcolor rgb '#1c2024'");
    Line("set grid ytics lc rgb '#e1e4e8' lt 1 lw 1");
    Line("set yrange [0:{:.10g}]", highest_ * 1.05);
    Line("set label 1 {} at screen {:.5f},{:.5f} center font 'Arial,15'", Quoted(figure_.title),
         0.5, Y(22));
    if (figure_.form == Figure::Form::kBars) {
      Line("set style data histogram\nset style histogram {} gap 1{}",
           ranged_ ? "errorbars" : "clustered", ranged_ ? " lw 1.2" : "");
      Line("set errorbars 0.6 lw 1.2 lc rgb '#1c2024'");
      Line("set style fill solid 1 noborder\nset xtics scale 0");
      Line("set boxwidth 0.92 relative");
      // Also where the last have no bars.
      Line("set xrange [-0.7:{:.1f}]", static_cast<double>(figure_.categories.size()) - 0.3);
    } else {
      XAxis();
    }
    if (rotated_) {
      Line("set xtics rotate by 40 right");
    }
    Line("unset key\nset multiplot");
    Key();
  }

  // gnuplot lays a key out for one part; this one is for all of them.
  void Key() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto [x, y] = key_[i];
      Line(
          "set object {} rectangle from screen {:.5f},{:.5f} to screen {:.5f},{:.5f} fc rgb '{}' "
          "fs solid noborder",
          i + 1, X(x), Y(y - 5), X(x + kKeyMark), Y(y + 5), ColourOf(names_[i]));
      Line("set label {} {} at screen {:.5f},{:.5f} left", i + kFirstOfKey, Quoted(names_[i]),
           X(x + kKeyMark + 8), Y(y));
    }
  }

  void XAxis() {
    const double most = figure_.x_max.value_or(greatest_x_);
    if (figure_.log_x) {
      Line("set logscale x 10\nset xrange [{:.10g}:{:.10g}]", std::min(least_x_, most), most);
      Line("set format x '%g'");
    } else if (figure_.form == Figure::Form::kLines) {
      const double span = greatest_x_ - least_x_;
      const double margin = span > 0 ? span * 0.03 : 1;
      Line("set xrange [{:.10g}:{:.10g}]", least_x_ - margin, greatest_x_ + margin);
    } else {
      Line("set xrange [0:{:.10g}]", most);
    }
  }

  void Plot(std::size_t index) {
    const Part& part = parts_[index];
    const int column = static_cast<int>(index) % columns_;
    const int top = top_ + static_cast<int>(index) / columns_ * (row_height_ + kPartName);
    const int left = part_width_ * column + kLeft;
    const int right = part_width_ * (column + 1) - kRight;
    Line("set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}", X(left), X(right));
    Line("set tmargin at screen {:.5f}\nset bmargin at screen {:.5f}", Y(top),
         Y(top + kPlotHeight));
    Line("set label 2 {} at graph 0.5,1.04 center", Quoted(part.name));
    Line("set label 3 {} at graph 0.5,screen {:.5f} center", Quoted(figure_.x_label),
         Y(top + row_height_ - 12));
    if (column == 0) {
      Line("set label 4 {} at screen {:.5f},graph 0.5 center rotate by 90", Quoted(figure_.y_label),
           X(16));
    }
    Data(part, index);
    std::vector<std::string> plots;
    for (std::size_t i = 0; i < part.series.size(); ++i) {
      plots.push_back(PlotOf(part, index, i));
    }
    text_ += "plot ";
    for (std::size_t i = 0; i < plots.size(); ++i) {
      text_ += (i == 0 ? "" : ", \\\n     ") + plots[i];
    }
    text_ += "\n";
    Line("unset label\nunset object");  // title and key are said once
  }

  void Data(const Part& part, std::size_t index) {
    if (figure_.form == Figure::Form::kBars) {
      Line("$part{} << EOD", index);
      for (std::size_t c = 0; c < figure_.categories.size(); ++c) {
        text_ += Quoted(figure_.categories[c]);
        for (const FigureSeries* series : part.series) {
          const auto& bar = series->bars[c];
          text_ += bar ? fmt::format(" {:.10g}", *bar) + RangeText(*series, c)
                       : (ranged_ ? " ? ? ?" : " ?");
        }
        text_ += '\n';
      }
      Line("EOD");
      return;
    }
    for (std::size_t i = 0; i < part.series.size(); ++i) {
      Line("$part{}_{} << EOD", index, i);
      const FigureSeries& series = *part.series[i];
      for (std::size_t at = 0; at < series.points.size(); ++at) {
        const auto& [x, y] = series.points[at];
        Line("{:.10g} {:.10g}{}", x, y, RangeText(series, at));
      }
      Line("EOD");
    }
  }

  // Columns for the least and the greatest value, if any series has them.
  [[nodiscard]] std::string RangeText(const FigureSeries& series, std::size_t at) const {
    if (!ranged_) {
      return "";
    }
    return series.ranges.empty()
               ? std::string(" NaN NaN")
               : fmt::format(" {:.10g} {:.10g}", series.ranges[at].first, series.ranges[at].second);
  }

  [[nodiscard]] std::string PlotOf(const Part& part, std::size_t index, std::size_t i) const {
    const std::string_view colour = ColourOf(KeyOf(*part.series[i]));
    switch (figure_.form) {
      case Figure::Form::kBars:
        if (ranged_) {
          return fmt::format("$part{} using {}:{}:{}:xtic(1) lc rgb '{}'", index, 3 * i + 2,
                             3 * i + 3, 3 * i + 4, colour);
        }
        return fmt::format("$part{} using {}:xtic(1) lc rgb '{}'", index, i + 2, colour);
      case Figure::Form::kLines:
        return fmt::format("$part{}_{} with {} lw {} pt 7 ps 0.6 lc rgb '{}'", index, i,
                           part.series[i]->ranges.empty() ? "linespoints" : "yerrorlines",
                           part.series[i]->ranges.empty() ? "2" : "1.5", colour);
      case Figure::Form::kSteps:
        break;
    }
    return fmt::format("$part{}_{} with steps lw 1.5 lc rgb '{}'", index, i, colour);
  }

  static constexpr std::size_t kFirstOfKey = 10;  // labels below are titles

  const Figure& figure_;
  const std::vector<Part> parts_;
  std::vector<std::string> names_;
  double highest_ = 0;
  double least_x_ = 1e300;
  double greatest_x_ = 0;
  bool rotated_ = false;
  bool ranged_ = false;  // some series has ranges
  int columns_ = 1;      // of parts
  int part_width_ = 0;
  int row_height_ = 0;
  int width_ = 0;
  int height_ = 0;
  int top_ = kTop;
  std::vector<std::pair<int, int>> key_;  // left and middle of each name, pixels
  std::string text_;
};

// True: it ran and ended well; false: there is no such program.
Result<bool> RunGnuplot(const std::string& script) {
  std::string program = "gnuplot";
  std::string argument = script;
  std::array<char*, 3> arguments{program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // It has opinions on margins; what it fails on is in the script.
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error =
      posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return false;
  }
  if (error != 0) {
    return Failed(fmt::format("gnuplot cannot be run: {}", std::strerror(error)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) {
      return Failed(fmt::format("gnuplot: {}", std::strerror(errno)));
    }
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Failed(fmt::format("gnuplot failed on {}", script));
  }
  return true;
}

// Its title is what is read out; "Gnuplot" says nothing.
Status NameImage(const std::string& svg, const std::string& title) {
  const Result<std::string> text = io::ReadBytes(svg);
  if (!text.ok() || text.value().find("</svg>") == std::string::npos) {
    return Failed(svg + ": gnuplot wrote no whole image");
  }
  std::string escaped = base::ReplaceAll(base::ReplaceAll(title, "&", "&amp;"), "<", "&lt;");
  return WriteTextFile(svg, base::ReplaceAll(text.value(), "<title>Gnuplot</title>",
                                             "<title>" + escaped + "</title>"));
}

}  // namespace

std::string_view Name(ValuesOf values_of) {
  constexpr std::array<std::string_view, 5> kNames{"paper", "artifact", "ours", "sound", "trace"};
  return kNames.at(static_cast<std::size_t>(values_of));
}

std::string FigureCsv(const Figure& figure) {
  std::string csv = "values_of,series,x,y,low,high\n";
  const auto add = [&csv](const FigureSeries& series, std::size_t at, const std::string& x,
                          double y) {
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},", Name(series.values_of),
                   CsvText(series.name), x, y);
    csv += series.ranges.empty()
               ? ",\n"
               : fmt::format("{},{}\n", series.ranges[at].first, series.ranges[at].second);
  };
  for (const FigureSeries& series : figure.series) {
    for (std::size_t i = 0; i < series.bars.size(); ++i) {
      if (series.bars[i]) {
        add(series, i, CsvText(figure.categories[i]), *series.bars[i]);
      }
    }
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      add(series, i, fmt::format("{}", series.points[i].first), series.points[i].second);
    }
  }
  return csv;
}

std::string FigureScript(const Figure& figure, const std::string& svg) {
  return Script(figure, svg).Take();
}

Result<Drawn> DrawFigure(const Figure& figure, const std::string& path) {
  const std::string svg = path + ".svg";
  const std::string script = path + ".gnuplot";
  RETURN_IF_ERROR(WriteTextFile(path + ".csv", FigureCsv(figure)));
  RETURN_IF_ERROR(WriteTextFile(script, FigureScript(figure, svg)));
  if (std::none_of(figure.series.begin(), figure.series.end(), HasValues)) {
    return Drawn::kNothing;
  }
  ASSIGN_OR_RETURN(const bool ran, RunGnuplot(script));
  if (!ran) {
    return Drawn::kNoProgram;
  }
  RETURN_IF_ERROR(NameImage(svg, figure.title));
  return Drawn::kYes;
}

}  // namespace trainyard::results
