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

namespace trainyard::loader {
namespace {

// The kinds in the order of their columns.
constexpr std::array<std::pair<std::string_view, double ModelSize::*>, 4> kKinds{{
    {"C_flops", &ModelSize::dense_flops},
    {"PC_flops", &ModelSize::point_flops},
    {"DC_flops", &ModelSize::depth_flops},
    {"O_flops", &ModelSize::linear_flops},
}};

Status CheckColumns(const io::CsvTable& table) {
  RETURN_IF_ERROR(table.Require({"model"}));
  RETURN_IF_ERROR(table.Require({"params"}));
  const bool kinds_known = table.Column({kKinds.front().first}) >= 0;
  if (!kinds_known && table.Column({"flops"}) < 0) {
    return table.BadHeader("neither 'flops' nor 'C_flops' is a column; expected one of them");
  }
  for (const auto& [name, member] : kKinds) {
    if (kinds_known) {
      RETURN_IF_ERROR(table.Require({name}));
    }
  }
  return {};
}

Result<ModelSize> ReadModelRow(const io::CsvRow& row) {
  const int model = row.Column("model");
  ModelSize size{.name = std::string(row.Text(model)),
                 .kinds_known = row.Column(kKinds.front().first) >= 0,
                 .line = row.line()};
  if (size.name.empty()) {
    return row.Bad(model, "the name of a model");
  }
  ASSIGN_OR_RETURN(size.params, row.Number(row.Column("params"), 0));
  if (!size.kinds_known) {
    ASSIGN_OR_RETURN(size.flops, row.Number(row.Column("flops"), 0));
    return size;
  }
  for (const auto& [name, member] : kKinds) {
    ASSIGN_OR_RETURN(size.*member, row.Number(row.Column(name), 0));
    size.flops += size.*member;
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
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  RETURN_IF_ERROR(CheckColumns(table));
  std::map<std::string, ModelSize> by_name;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(const ModelSize size, ReadModelRow(row));
    const auto [place, fresh] = by_name.try_emplace(size.name, size);
    if (fresh || SameSizes(place->second, size)) {
      return {};
    }
    if (twins == Twins::kRefused) {
      return row.BadRow(
          fmt::format("model '{}' is also in line {}, with other numbers; expected "
                      "one row for each model",
                      place->first, place->second.line));
    }
    place->second.twin = size.line;
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
    return BadInput(fmt::format("{}: {}", path_, base::UnknownName("model", name, known)));
  }
  if (found->twin != 0) {
    return BadInput(fmt::format(
        "{}:{}: model '{}' is also in line {}, with other numbers; expected one row for each model "
        "in use",
        path_, found->twin, name, found->line));
  }
  return &*found;
}

}  // namespace trainyard::loader
