// SPDX-License-Identifier: Apache-2.0
#include "cli/live/controller_switches.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "live/switches.h"

namespace trainyard::cli {
namespace {

struct SwitchOptions : ClusterOptions {
  void (*put)(v1::SwitchesRequest& request) = nullptr;
  const char* done = "";  // where the switch is off afterwards; empty: it is on
  std::string reason;
};

Status Set(const SwitchOptions& options) {
  v1::ClientRequest request;
  v1::SwitchesRequest& switches = *request.mutable_switches();
  options.put(switches);
  switches.set_reason(options.reason);
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  const v1::Switches& now = reply.switches().switches();
  if (options.json) {
    PrintJson(now);
    return {};
  }
  const bool ends = *options.done != '\0';
  fmt::print("{}{}{}", ends ? options.done : "",
             ends && !SwitchesText(now).empty() ? "still: " : "", SwitchesText(now));
  return {};
}

struct SwitchWords {
  const char* name;
  const char* help;
  const char* done;
};

void AddSwitch(CLI::App& controller, Command& chosen, const SwitchWords& words,
               void (*put)(v1::SwitchesRequest& request)) {
  auto options = std::make_shared<SwitchOptions>();
  options->put = put;
  options->done = words.done;
  CLI::App* command = controller.add_subcommand(words.name, words.help);
  command->add_option("--reason", options->reason, "why, for whoever looks at `nodes` or waits");
  AddClusterOptions(*command, *options);
  command->callback([options, &chosen] { chosen.run = [options] { return Set(*options); }; });
}

std::string LineOf(const v1::Switch& one, const std::string& what, const char* end) {
  return one.on() ? fmt::format("{}; 'trainyard controller {}' ends that\n",
                                Printable(live::TextOf(one, what)), end)
                  : std::string();
}

}  // namespace

void AddSwitches(CLI::App& controller, Command& chosen) {
  controller.require_subcommand(0, 1);
  AddSwitch(controller, chosen, {"pause", "make no decisions; what runs goes on", ""},
            [](v1::SwitchesRequest& request) { request.set_paused(true); });
  AddSwitch(controller, chosen, {"resume", "make decisions again", "decisions are made again\n"},
            [](v1::SwitchesRequest& request) { request.set_paused(false); });
  AddSwitch(controller, chosen, {"close", "take no further jobs", ""},
            [](v1::SwitchesRequest& request) { request.set_closed(true); });
  AddSwitch(controller, chosen, {"open", "take jobs again", "jobs are taken again\n"},
            [](v1::SwitchesRequest& request) { request.set_closed(false); });
}

std::string SwitchesText(const v1::Switches& switches) {
  return LineOf(switches.paused(), "decisions are paused", "resume") +
         LineOf(switches.closed(), "the controller is closed to submissions", "open");
}

}  // namespace trainyard::cli
