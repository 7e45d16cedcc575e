// SPDX-License-Identifier: Apache-2.0
// Components in a shared object, loaded with --plugin (docs/adding-a-policy.md). One source file
// says
//   TRAINYARD_PLUGIN(SlackEntry());
// once, with the entries of all its components.
#pragma once

#include <cstdint>
#include <span>
#include <version>

#include "trainyard/component_entry.h"
#include "trainyard/version.h"

// Raised with every change of the public headers after which plug-ins must be built again.
#define TRAINYARD_PLUGIN_INTERFACE 9

#define TRAINYARD_TEXT_OF(x) #x
#define TRAINYARD_TEXT(x) TRAINYARD_TEXT_OF(x)

#if defined(__clang__)
#define TRAINYARD_COMPILER "clang " TRAINYARD_TEXT(__clang_major__)
#else
#define TRAINYARD_COMPILER "gcc " TRAINYARD_TEXT(__GNUC__)
#endif
#if defined(_LIBCPP_VERSION)
#define TRAINYARD_STANDARD_LIBRARY "libc++ " TRAINYARD_TEXT(_LIBCPP_VERSION)
#else
#define TRAINYARD_STANDARD_LIBRARY "libstdc++ " TRAINYARD_TEXT(_GLIBCXX_RELEASE)
#endif

// What program and plug-in must agree on. A literal: a constant with a name could be taken from the
// program when the plug-in is loaded.
#define TRAINYARD_PLUGIN_STAMP                                          \
  "trainyard " TRAINYARD_VERSION ", plug-in interface " TRAINYARD_TEXT( \
      TRAINYARD_PLUGIN_INTERFACE) ", " TRAINYARD_COMPILER ", " TRAINYARD_STANDARD_LIBRARY

namespace trainyard {

// The symbol `trainyard_plugin`. `stamp` and `layout` keep their places for ever; `components` is
// called only if they are the program's own.
struct Plugin {
  const char* stamp;
  std::uint64_t layout;
  std::span<const ComponentEntry> (*components)();
};

template <typename... Types>
consteval std::uint64_t LayoutOf() {
  std::uint64_t layout = 14695981039346656037U;
  ((layout = (layout ^ sizeof(Types)) * 1099511628211U), ...);
  return layout;
}
// Differs where the public types have other sizes: changed headers, a debug mode of the library.
consteval std::uint64_t PluginLayout() {
  return LayoutOf<ComponentEntry, ComponentContext, Components, Result<Components>, Error,
                  OptionSpec, Options, Snapshot, JobView, Metric, JobSpec, Cluster, NodeSpec,
                  NodeChange, Grant, Slice, Demand, Walk, Verdict, PlannedEnd, Proposal, Requires,
                  May, Key, FreeGpus, JobTraits, StageTimes, SoftDeadline, DataSet, GpuRange,
                  GpuType, JobTable::Brief, Selector::Choice, Selector::Outlook, Throughput,
                  CoRunners, Standing, OrderingTraits, PackRequest, RankedJob, Tuning::Tuned,
                  Candidates>();
}

}  // namespace trainyard

#define TRAINYARD_PLUGIN(...)                                                               \
  static std::span<const ::trainyard::ComponentEntry> TrainyardPluginComponents() {         \
    static const ::trainyard::ComponentEntry kEntries[] = {__VA_ARGS__};                    \
    return kEntries;                                                                        \
  }                                                                                         \
  extern "C" {                                                                              \
  extern __attribute__((visibility("default"))) const ::trainyard::Plugin trainyard_plugin; \
  const ::trainyard::Plugin trainyard_plugin = {                                            \
      TRAINYARD_PLUGIN_STAMP, ::trainyard::PluginLayout(), TrainyardPluginComponents};      \
  }                                                                                         \
  static_assert(true, "a semicolon follows")
