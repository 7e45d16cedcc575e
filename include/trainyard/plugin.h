// SPDX-License-Identifier: Apache-2.0
// Components in a shared object, loaded with --plugin (docs/adding-a-policy.md). One source file
// says
//
//   TRAINYARD_PLUGIN(SlackEntry());
//
// once, with the entries of all its components.
//
// The interface is C++: plug-in and program exchange standard containers and virtual functions, so
// both must be built from the same headers by the same compiler with the same standard library.
// Before it calls anything the program compares two marks that the macro has left in the plug-in, a
// text (TRAINYARD_PLUGIN_STAMP) and a number made of the sizes of all public types (PluginLayout).
// A plug-in that differs is refused with what it is built for; docs/adding-a-policy.md, "When it is
// refused", lists the messages. A plug-in stays loaded to the end of the program.
#pragma once

#include <cstdint>
#include <span>
#include <version>

#include "trainyard/component_entry.h"
#include "trainyard/version.h"

// Raised with every change of the public headers after which plug-ins must be built again: in the
// declarations, or in what they mean.
#define TRAINYARD_PLUGIN_INTERFACE 19

// A macro's value as a string literal.
#define TRAINYARD_TEXT_OF(x) #x
#define TRAINYARD_TEXT(x) TRAINYARD_TEXT_OF(x)

// By major version: what these change in their ABI they change with it.
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
// called, once, only if they are the program's own.
struct Plugin {
  const char* stamp;     // TRAINYARD_PLUGIN_STAMP of the headers it was built with
  std::uint64_t layout;  // PluginLayout() likewise
  // The entries, which last as long as the shared object.
  std::span<const ComponentEntry> (*components)();
};

// A hash (FNV-1a) of the sizes of the types, in this order.
template <typename... Types>
consteval std::uint64_t LayoutOf() {
  std::uint64_t layout = 14695981039346656037U;
  ((layout = (layout ^ sizeof(Types)) * 1099511628211U), ...);
  return layout;
}
// Differs where the public types have other sizes: changed headers, a debug mode of the library. A
// public type that component and program exchange belongs into the list.
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

// Defines the symbol by which the program finds the components: the arguments, each an expression
// of type ComponentEntry, evaluated when the program asks for them. Once in a shared object, in a
// namespace with a name or in none, with a semicolon behind it.
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
