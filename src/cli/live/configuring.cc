// SPDX-License-Identifier: Apache-2.0
#include "cli/live/configuring.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_json.h"

namespace trainyard::cli {
namespace {

constexpr int kMostLines = 20;

std::string HeldText(int gpus, const google::protobuf::RepeatedPtrField<std::string>& nodes) {
  return fmt::format("{} GPU{} on {}", gpus, gpus == 1 ? "" : "s",
                     Printable(fmt::format("{}", fmt::join(nodes, ", "))));
}

std::string EffectText(const v1::JobEffect& effect) {
  const std::string before = HeldText(effect.gpus_before(), effect.nodes_before());
  const std::string after = HeldText(effect.gpus_after(), effect.nodes_after());
  return effect.gpus_before() == 0 ? fmt::format("job {} starts with {}", effect.job(), after)
         : effect.gpus_after() == 0
             ? fmt::format("job {} gives back {}, and waits", effect.job(), before)
             : fmt::format("job {} goes from {} to {}", effect.job(), before, after);
}

std::string EffectsText(const v1::ConfigureReply& reply) {
  std::string text;
  for (const std::string& node : reply.agents_to_restart()) {
    text +=
        fmt::format("  {} gets no jobs until its agent is started with the new number of GPUs\n",
                    Printable(node));
  }
  if (reply.paused()) {
    text +=
        "  decisions are paused: those of the new configuration come with 'trainyard controller "
        "resume'\n";
  }
  if (reply.effects().empty()) {
    return text + "  no job gets or loses GPUs by the change itself\n";
  }
  for (int i = 0; i < reply.effects_size() && i < kMostLines; ++i) {
    text += "  " + EffectText(reply.effects(i)) + "\n";
  }
  if (const int more = reply.effects_size() - kMostLines; more > 0) {
    text += fmt::format("  and {} more; --json names all\n", more);
  }
  return text;
}

}  // namespace

Result<v1::ConfigurationReply> FetchConfiguration(const ClusterOptions& options,
                                                  std::optional<std::uint64_t> number) {
  v1::ClientRequest request;
  v1::ConfigurationRequest& asked = *request.mutable_configuration();
  if (number) {
    asked.set_number(*number);
  }
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  return reply.configuration();
}

Status Configure(const Configuring& options, const std::string& name, const std::string& text) {
  v1::ClientRequest request;
  v1::ConfigureRequest& configure = *request.mutable_configure();
  configure.set_text(text);
  configure.set_name(name);
  configure.set_rehearse(options.rehearse);
  if (options.expected) {
    configure.set_expected(*options.expected);
  }
  const Result<v1::ClientReply> reply = CallTo(options, request);
  if (!reply.ok()) {
    const Error& error = reply.error();
    return options.is_file && error.code == ErrorCode::kInvalidArgument ? BadInput(error.message)
                                                                        : error;
  }
  const v1::ConfigureReply& done = reply.value().configure();
  if (options.json) {
    PrintJson(done);
  } else if (done.changes().empty()) {
    fmt::print("configuration {} says the same: nothing to change\n", done.number());
  } else if (options.rehearse) {
    fmt::print("would change configuration {}: {}\n{}nothing has been changed; {}\n", done.number(),
               Printable(done.changes()), EffectsText(done),
               base::ReplaceAll(options.how, "{}", std::to_string(done.number())));
  } else {
    fmt::print("configuration {} is in force: {}\n{}", done.number(), Printable(done.changes()),
               EffectsText(done));
  }
  return {};
}

}  // namespace trainyard::cli
