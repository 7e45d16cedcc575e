// SPDX-License-Identifier: Apache-2.0
// trainyard profiles show, export, diff: what a live cluster has measured of its own jobs.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "live/measured/measured_profiles.h"
#include "profile/measured_file.h"
#include "results/write/output_file.h"

namespace trainyard::cli {
namespace {

struct ProfilesOptions : ClusterOptions {
  std::string model;  // empty: all
  std::string folder;
  std::vector<std::string> folders;  // diff: none, one or two
};

Result<v1::ProfilesReply> OfCluster(const ClusterOptions& options) {
  v1::ClientRequest request;
  request.mutable_profiles();
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  return reply.profiles();
}

profile::MeasuredBook BookOf(const v1::ProfilesReply& reply) {
  profile::MeasuredBook book;
  for (const v1::MeasuredSamples& row : reply.measured()) {
    const std::optional<profile::Measure> measure = profile::MeasureNamed(row.measure());
    for (const double value : row.values()) {
      if (measure) {  // a newer controller may know others
        (void)book.Add({.model = row.model(),
                        .batch_size = row.batch_size(),
                        .gpu_type = row.gpu_type(),
                        .gpus = row.gpus()},
                       *measure, value);
      }
    }
  }
  return book;
}

// -------------------------------------------------------------------------------------------- text

std::vector<std::string> Begin(const v1::MeasuredSamples& row) {
  const bool of_loader = row.measure() == profile::NameOf(profile::Measure::kLoader);
  return {Printable(row.model()), row.batch_size() > 0 ? std::to_string(row.batch_size()) : "-",
          OrDash(row.gpu_type()),
          of_loader ? fmt::format("{} workers", row.gpus()) : std::to_string(row.gpus()),
          Printable(row.measure())};
}

std::string StatedText(const v1::MeasuredSamples& row) {
  return row.has_stated() ? fmt::format("{:.4g}", row.stated()) : "-";
}

std::string ShowText(const v1::ProfilesReply& reply) {
  std::vector<std::vector<std::string>> rows{{"model", "batch", "gpu type", "gpus", "measure",
                                              "samples", "median", "spread", "profile", "used"}};
  for (const v1::MeasuredSamples& row : reply.measured()) {
    std::vector<std::string> cells = Begin(row);
    cells.insert(
        cells.end(),
        {std::to_string(row.values_size()), fmt::format("{:.4g}", row.median()),
         fmt::format("{:.2g}", row.spread()), StatedText(row),
         row.counts() ? "yes" : fmt::format("from {} samples", profile::Samples::kNeeded)});
    rows.push_back(std::move(cells));
  }
  return rows.size() == 1
             ? "nothing has been measured yet: only jobs that state --model and report "
               "their progress are\n"
             : TableText(rows);
}

std::string DiffText(const v1::ProfilesReply& reply, const std::string& before,
                     const std::string& after) {
  std::vector<std::vector<std::string>> rows{
      {"model", "batch", "gpu type", "gpus", "measure", before, after, "change"}};
  for (const v1::MeasuredSamples& row : reply.measured()) {
    std::vector<std::string> cells = Begin(row);
    const bool both = row.has_stated() && row.stated() > 0 && row.values_size() > 0;
    cells.insert(
        cells.end(),
        {StatedText(row), row.values_size() > 0 ? fmt::format("{:.4g}", row.median()) : "-",
         both ? fmt::format("{:+.1f} %", 100 * (row.median() / row.stated() - 1)) : "-"});
    rows.push_back(std::move(cells));
  }
  return rows.size() == 1 ? "nothing to compare: neither side has enough samples\n"
                          : TableText(rows);
}

// ---------------------------------------------------------------------------------------- commands

template <typename Which>
void EraseRows(v1::ProfilesReply& reply, Which which) {
  auto& rows = *reply.mutable_measured();
  rows.erase(std::remove_if(rows.begin(), rows.end(), which), rows.end());
}

void KeepModel(const std::string& model, v1::ProfilesReply& reply) {
  if (!model.empty()) {
    EraseRows(reply, [&model](const v1::MeasuredSamples& row) { return row.model() != model; });
  }
}

Status ShowProfiles(const ProfilesOptions& options) {
  ASSIGN_OR_RETURN(v1::ProfilesReply reply, OfCluster(options));
  KeepModel(options.model, reply);
  if (options.json) {
    PrintJson(reply);
  } else {
    fmt::print("{}", ShowText(reply));
  }
  return {};
}

Status Export(const ProfilesOptions& options) {
  ASSIGN_OR_RETURN(v1::ProfilesReply reply, OfCluster(options));
  KeepModel(options.model, reply);
  const profile::MeasuredBook book = BookOf(reply);
  if (book.empty()) {
    return Failed(
        "the cluster has measured nothing" +
        (options.model.empty() ? std::string() : " of model '" + options.model + "'") +
        " yet; expected jobs that state --model, report their progress and have run for a while");
  }
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  const std::string path = options.folder + "/" + std::string(profile::kMeasuredFile);
  RETURN_IF_ERROR(results::WriteTextFile(path, profile::MeasuredText(book)));
  fmt::print("{}: {} measurements\n", path, reply.measured_size());
  return {};
}

// The rows that count on one side at least, with what the other says as stated.
v1::ProfilesReply Difference(const v1::ProfilesReply& before, const v1::ProfilesReply& after) {
  using Key = std::tuple<std::string, std::int64_t, std::string, int, std::string>;
  const auto key = [](const v1::MeasuredSamples& row) {
    return Key(row.model(), row.batch_size(), row.gpu_type(), row.gpus(), row.measure());
  };
  std::map<Key, v1::MeasuredSamples> rows;
  for (const v1::MeasuredSamples& row : after.measured()) {
    if (row.counts()) {
      rows[key(row)] = row;
      rows[key(row)].clear_stated();
    }
  }
  for (const v1::MeasuredSamples& row : before.measured()) {
    if (!row.counts()) {
      continue;
    }
    v1::MeasuredSamples& both = rows[key(row)];
    if (both.values_size() == 0) {
      both = row;
      both.clear_values();
      both.clear_median();
      both.clear_spread();
      both.clear_counts();
    }
    both.set_stated(row.median());
  }
  v1::ProfilesReply reply;
  for (auto& [of, row] : rows) {
    *reply.add_measured() = std::move(row);
  }
  return reply;
}

Result<v1::ProfilesReply> OfFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(const profile::MeasuredBook book, profile::ReadMeasured(folder));
  return live::RowsOf(book);
}

Status Diff(const ProfilesOptions& options) {
  if (options.folders.size() > 2) {
    return InvalidArgument("profiles diff compares two at most; expected up to two folders");
  }
  v1::ProfilesReply reply;
  std::string before = "profile";
  std::string after = "measured";
  if (options.folders.empty()) {
    ASSIGN_OR_RETURN(reply, OfCluster(options));
    EraseRows(reply, [](const v1::MeasuredSamples& row) { return !row.counts(); });
  } else {
    ASSIGN_OR_RETURN(const v1::ProfilesReply first, OfFolder(options.folders.front()));
    ASSIGN_OR_RETURN(const v1::ProfilesReply second, options.folders.size() == 2
                                                         ? OfFolder(options.folders.back())
                                                         : OfCluster(options));
    before = options.folders.front();
    after = options.folders.size() == 2 ? options.folders.back() : "cluster";
    reply = Difference(first, second);
  }
  KeepModel(options.model, reply);
  if (options.json) {
    PrintJson(reply);
  } else {
    fmt::print("{}", DiffText(reply, before, after));
  }
  return {};
}

CLI::App* AddOne(CLI::App* command, Status (*run)(const ProfilesOptions&), Command& chosen,
                 const std::shared_ptr<ProfilesOptions>& options) {
  AddClusterOptions(*command, *options);
  command->add_option("--model", options->model, "of this model only");
  command->callback(
      [options, run, &chosen] { chosen.run = [options, run] { return run(*options); }; });
  return command;
}

}  // namespace

void AddProfiles(CLI::App& app, Command& chosen) {
  CLI::App* profiles =
      app.add_subcommand("profiles", "what the cluster has measured of its own jobs");
  profiles->require_subcommand(1);
  const auto options = std::make_shared<ProfilesOptions>();
  AddOne(profiles->add_subcommand("show", "a line for each measurement"), ShowProfiles, chosen,
         options);
  AddOne(profiles->add_subcommand("export", "write it into a folder, for --measured"), Export,
         chosen, options)
      ->add_option("FOLDER", options->folder, "gets measured.csv")
      ->required();
  AddOne(
      profiles->add_subcommand(
          "diff",
          "measured against the controller's profiles; or against an exported folder; or one such "
          "folder against another"),
      Diff, chosen, options)
      ->add_option("FOLDER", options->folders, "none, one or two");
}

}  // namespace trainyard::cli
