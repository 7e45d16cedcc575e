// SPDX-License-Identifier: Apache-2.0
#include "loader/model_catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"

namespace trainyard {
namespace {

// The kinds in the order of their columns.
constexpr std::array<std::pair<std::string_view, double ModelSize::*>, 4> kKinds{{
    {"C_flops", &ModelSize::dense_flops},
    {"PC_flops", &ModelSize::point_flops},
    {"DC_flops", &ModelSize::depth_flops},
    {"O_flops", &ModelSize::linear_flops},
}};

struct Columns {
  int model = -1;
  int params = -1;
  int flops = -1;
  std::array<int, kKinds.size()> kinds{};
  bool kinds_known = false;
};

Result<Columns> FindColumns(const CsvTable& table) {
  Columns columns{.flops = table.Column({"flops"})};
  ASSIGN_OR_RETURN(columns.model, table.Require({"model"}));
  ASSIGN_OR_RETURN(columns.params, table.Require({"params"}));
  columns.kinds_known = table.Column({kKinds.front().first}) >= 0;
  if (!columns.kinds_known && columns.flops < 0) {
    return table.BadHeader("neither 'flops' nor 'C_flops' is a column; expected one of them");
  }
  for (std::size_t i = 0; columns.kinds_known && i < kKinds.size(); ++i) {
    ASSIGN_OR_RETURN(columns.kinds[i], table.Require({kKinds[i].first}));
  }
  return columns;
}

Status ReadKinds(const Columns& columns, const CsvRow& row, ModelSize& size) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    ASSIGN_OR_RETURN(size.*kKinds[i].second, row.Number(columns.kinds[i], 0));
    size.flops += size.*kKinds[i].second;
  }
  return {};
}

Result<ModelSize> ReadModelRow(const Columns& columns, const CsvRow& row) {
  ModelSize size{.name = std::string(row.Text(columns.model)),
                 .kinds_known = columns.kinds_known,
                 .line = row.line()};
  if (size.name.empty()) {
    return row.Bad(columns.model, "the name of a model");
  }
  ASSIGN_OR_RETURN(size.params, row.Number(columns.params, 0));
  if (columns.kinds_known) {
    RETURN_IF_ERROR(ReadKinds(columns, row, size));
  } else {
    ASSIGN_OR_RETURN(size.flops, row.Number(columns.flops, 0));
  }
  return size;
}

bool SameSizes(const ModelSize& one, const ModelSize& other) {
  return one.params == other.params && one.flops == other.flops &&
         std::all_of(kKinds.begin(), kKinds.end(),
                     [&](const auto& kind) { return one.*kind.second == other.*kind.second; });
}

}  // namespace

Result<ModelCatalog> ModelCatalog::Read(const std::string& path, Twins twins) {
  ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Open(path));
  ASSIGN_OR_RETURN(const Columns columns, FindColumns(table));
  std::map<std::string, ModelSize> by_name;
  RETURN_IF_ERROR(table.ForEach([&](const CsvRow& row) -> Status {
    Result<ModelSize> size = ReadModelRow(columns, row);
    if (!size.ok()) {
      return size.error();
    }
    const auto [place, fresh] = by_name.try_emplace(size.value().name, size.value());
    if (fresh || SameSizes(place->second, size.value())) {
      return {};
    }
    if (twins == Twins::kRefused) {
      return row.BadRow(
          fmt::format("model '{}' is also in line {}, with other numbers; expected "
                      "one row for each model",
                      place->first, place->second.line));
    }
    place->second.twin = size.value().line;
    return {};
  }));
  ModelCatalog catalog;
  catalog.path_ = path;
  for (auto& [name, size] : by_name) {
    catalog.models_.push_back(std::move(size));
  }
  return catalog;
}

ModelCatalog ModelCatalog::Of(std::vector<ModelSize> models) {
  ModelCatalog catalog;
  catalog.models_ = std::move(models);
  std::sort(catalog.models_.begin(), catalog.models_.end(),
            [](const ModelSize& a, const ModelSize& b) { return a.name < b.name; });
  return catalog;
}

Result<const ModelSize*> ModelCatalog::Find(std::string_view name) const {
  const auto found = std::lower_bound(
      models_.begin(), models_.end(), name,
      [](const ModelSize& size, std::string_view wanted) { return size.name < wanted; });
  if (found == models_.end() || found->name != name) {
    std::vector<std::string_view> known;
    for (const ModelSize& size : models_) {
      known.push_back(size.name);
    }
    return BadInput(fmt::format("{}: {}", path_, UnknownName("model", name, known)));
  }
  if (found->twin != 0) {
    return BadInput(fmt::format(
        "{}:{}: model '{}' is also in line {}, with other numbers; expected one row for each model "
        "in use",
        path_, found->twin, name, found->line));
  }
  return &*found;
}

}  // namespace trainyard
