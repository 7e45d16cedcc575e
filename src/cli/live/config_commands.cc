// SPDX-License-Identifier: Apache-2.0
// trainyard config show: what the cluster decides by.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"

namespace trainyard::cli {
namespace {

Status ShowConfiguration(const ClusterOptions& options) {
  v1::ClientRequest request;
  request.mutable_configuration();
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  const v1::ConfigurationReply& shown = reply.configuration();
  if (options.json) {
    PrintJson(shown);
    return {};
  }
  fmt::print(
      "# configuration {}, since {}, by {}\n{}", shown.number(), base::UtcText(shown.since()),
      shown.author().empty() ? "the options of a start" : Printable(shown.author()), shown.text());
  return {};
}

}  // namespace

void AddConfig(CLI::App& app, Command& chosen) {
  CLI::App* config = app.add_subcommand("config", "what the cluster decides by");
  config->require_subcommand(1);
  CLI::App* show = config->add_subcommand(
      "show", "policy, placement and nodes in force, as TOML, with number and time");
  const auto options = std::make_shared<ClusterOptions>();
  AddClusterOptions(*show, *options);
  show->callback(
      [options, &chosen] { chosen.run = [options] { return ShowConfiguration(*options); }; });
}

}  // namespace trainyard::cli
