// SPDX-License-Identifier: Apache-2.0
// Plug-ins with one mistake each, and one without that calls every function of the public headers.
#include <array>
#include <limits>
#include <memory>

#include "trainyard/free_gpus.h"
#include "trainyard/plugin.h"

namespace trainyard {
#if defined(VARIANT_MISSING_FUNCTION)
int NobodyDefinesThis();
#endif
namespace {

#if defined(VARIANT_TAKEN_NAME)
constexpr std::string_view kName = "las";
#elif defined(VARIANT_PRESET_NAME)
constexpr std::string_view kName = "dlas-gpu";
#elif defined(VARIANT_BAD_NAME)
constexpr std::string_view kName = "My policy";
#else
constexpr std::string_view kName = "variant";
#endif

#if defined(VARIANT_BAD_DEFAULT)
constexpr std::string_view kDefault = "soon";
#else
constexpr std::string_view kDefault = "2/3";
#endif

constexpr std::array<OptionSpec, 2> kOptions{{
    {"numbers", OptionSpec::Kind::kNumbers, kDefault, "two numbers"},
    {"text", OptionSpec::Kind::kText, "", "any text"},
}};

// The sum of the option's numbers, the long way round.
double SumByAllFunctions(const Options& options) {
  const Cluster cluster{.name = {}, .nodes = {{.name = {}, .gpus = 8}}, .changes = {}};
  FreeGpus free(cluster);
  const Slices slices{{.node = NodeId{0}, .gpus = 0xFF}};
  free.SetUp(NodeId{0}, free.AreFree(slices));
  free.Take(slices);
  free.Return(slices);
  NodeSet set(2);
  set.Insert(NodeId{1});
  set.Erase(set.First().value_or(NodeId{0}));
  const Result<NamedOptions> named = ParseNamedOptions("x:numbers=0");
  const Result<Options> zero = Options::Make(kOptions, named.value(), options.Text("text"));
  double sum = zero.value().Number("numbers");
  for (const double number : options.Numbers("numbers")) {
    sum += number;
  }
  return sum + free.total() - 8;
}

class Variant final : public Ordering {
 public:
  explicit Variant(double sum) : sum_(sum) {}
  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] OrderingTraits traits() const override { return {}; }
  [[nodiscard]] Standing StandingOf(const JobView& /*job*/, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
#if defined(VARIANT_NOT_A_NUMBER)
    return {.key = { 0, std::numeric_limits<double>::quiet_NaN() }};
#else
    return {.key = { sum_ }};
#endif
  }

 private:
  [[maybe_unused]] const double sum_;
};

[[maybe_unused]] Result<Components> Make(const Options& options,
                                         const ComponentContext& /*context*/) {
#if defined(VARIANT_MISSING_FUNCTION)
  return Components{.ordering = std::make_unique<Variant>(NobodyDefinesThis())};
#elif defined(VARIANT_NO_COMPONENT)
  return Components{};
#endif
  const double sum = SumByAllFunctions(options);
  if (sum != 5) {
    return Failed("the numbers are wrong; expected 5 as their sum");
  }
  return Components{.ordering = std::make_unique<Variant>(sum)};
}

[[maybe_unused]] ComponentEntry Entry() {
  return {ComponentKind::kPolicy, kName, "one of the variants of the tests", kOptions, Make};
}

#if defined(VARIANT_OTHER_VERSION) || defined(VARIANT_OTHER_LAYOUT)
std::span<const ComponentEntry> MustNotBeCalled() { __builtin_trap(); }
#endif

}  // namespace

#if defined(VARIANT_OTHER_VERSION)
extern "C" {
extern __attribute__((visibility("default"))) const Plugin trainyard_plugin;
const Plugin trainyard_plugin{"trainyard 0.0.1, of long ago", PluginLayout(), MustNotBeCalled};
}
#elif defined(VARIANT_OTHER_LAYOUT)
extern "C" {
extern __attribute__((visibility("default"))) const Plugin trainyard_plugin;
const Plugin trainyard_plugin{TRAINYARD_PLUGIN_STAMP, 1, MustNotBeCalled};
}
#elif !defined(VARIANT_NO_SYMBOL)
TRAINYARD_PLUGIN(Entry());
#endif

}  // namespace trainyard
