// SPDX-License-Identifier: Apache-2.0
#include "results/write/html.h"

#include <filesystem>
#include <utility>

#include "base/try.h"
#include "results/write/output.h"
#include "results/write/output_file.h"

namespace trainyard::results {
namespace {

constexpr std::string_view kPlace = "__TRAINYARD_REPORT_DATA__";

}  // namespace

Result<std::string> FillReport(std::string_view html_template, std::string_view json) {
  const std::size_t place = html_template.find(kPlace);
  if (place == std::string_view::npos) {
    return Failed("the report template has no place for the data; expected the text " +
                  std::string(kPlace) + " in it");
  }
  std::string page(html_template.substr(0, place));
  page.reserve(html_template.size() + json.size());
  // In JSON, '<' stands only inside strings, where the escape means the same.
  for (const char c : json) {
    if (c == '<') {
      page += "\\u003c";
    } else {
      page += c;
    }
  }
  page += html_template.substr(place + kPlace.size());
  return page;
}

Status WriteReport(std::span<const RunResult> runs, const std::string& command,
                   const std::string& path, std::string_view html_template,
                   std::span<const ReportTable> explanations) {
  if (runs.empty()) {
    return InvalidArgument("a report needs at least one run");
  }
  ASSIGN_OR_RETURN(std::string page,
                   FillReport(html_template, ReportJson(runs, command, explanations)));
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (!directory.empty()) {
    RETURN_IF_ERROR(MakeOutputDirectory(directory));
  }
  return WriteTextFile(path, std::move(page));
}

}  // namespace trainyard::results
