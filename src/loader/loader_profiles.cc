// SPDX-License-Identifier: Apache-2.0
#include "loader/loader_profiles.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "io/csv_reader.h"

namespace trainyard::loader {
namespace {

constexpr std::string_view kCatalogFile = "models.csv";
constexpr std::string_view kModelFile = "loader_model.csv";

std::string CatalogAt(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_directory(path, code)
             ? (std::filesystem::path(path) / kCatalogFile).string()
             : path;
}

}  // namespace

bool LoaderProfiles::AreAt(const std::string& path) {
  const std::string file = CatalogAt(path);
  std::error_code code;
  if (!std::filesystem::is_regular_file(file, code)) {
    return false;
  }
  const Result<io::CsvTable> table = io::CsvTable::Open(file);
  return table.ok() && table.value().Column({"model"}) >= 0 &&
         table.value().Column({"params"}) >= 0;
}

Result<LoaderProfiles> LoaderProfiles::Read(const std::string& path) {
  const std::string file = CatalogAt(path);
  LoaderProfiles profiles;
  ASSIGN_OR_RETURN(profiles.catalog_, ModelCatalog::Read(file, ModelCatalog::Twins::kRefusedInUse));
  const std::filesystem::path beside = std::filesystem::path(path) / kModelFile;
  std::error_code code;
  if (file != path && std::filesystem::exists(beside, code)) {
    ASSIGN_OR_RETURN(profiles.model_, ThroughputModel::Read(beside.string()));
  }
  return profiles;
}

LoaderProfiles LoaderProfiles::Of(std::vector<ModelSize> sizes, ThroughputModel model) {
  LoaderProfiles profiles;
  profiles.catalog_ = ModelCatalog::Of(std::move(sizes));
  profiles.model_ = model;
  return profiles;
}

ThroughputModel LoaderProfiles::model(bool published) const {
  ThroughputModel model = model_;
  model.least_seconds = published ? 0 : model.least_seconds;
  return model;
}

Status LoaderProfiles::Check(const JobSpec& job) const {
  if (job.batch_size < 1) {
    return BadInput("job " + job.name + " has no batch size; expected one");
  }
  const Result<const ModelSize*> size = catalog_.Find(job.model);
  return size.ok() ? Status() : size.error();
}

const ModelSize& LoaderProfiles::SizeOf(const JobSpec& job) const {
  const Result<const ModelSize*> size = catalog_.Find(job.model);
  CHECK(size.ok());
  return *size.value();
}

TrainingShape LoaderProfiles::ShapeOf(const JobSpec& job) {
  return {.batch = static_cast<double>(job.batch_size), .devices = job.gpus};
}

}  // namespace trainyard::loader
