// SPDX-License-Identifier: Apache-2.0
// Calls by which admins put another configuration in force.
#pragma once

#include "engine/engine.h"
#include "live/calls/call.h"

namespace trainyard::live {

class ConfigurationChanges {
 public:
  // Both must outlive it.
  ConfigurationChanges(CallContext& context, const engine::Engine& engine)
      : context_(context), engine_(engine) {}

  // Puts what the text says in force, or says what would change. O(jobs + nodes), and a decision of
  // a fork of the engine.
  [[nodiscard]] Result<Reply> Configure(const Call& call, const v1::ConfigureRequest& request);

  // A node that the cluster does not have becomes one of its nodes, as its agent says. Error: the
  // cluster is not open, or full.
  [[nodiscard]] Status Admit(const v1::Hello& hello);

 private:
  [[nodiscard]] Status Check(const Call& call, const v1::ConfigureRequest& request) const;
  [[nodiscard]] Status CheckNumber(const v1::ConfigureRequest& request) const;
  [[nodiscard]] Result<v1::ConfigureReply> EffectsOf(const engine::SharedConfiguration& next) const;
  void Apply(const engine::SharedConfiguration& next);

  CallContext& context_;
  const engine::Engine& engine_;
};

}  // namespace trainyard::live
