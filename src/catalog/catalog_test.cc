// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace trainyard::catalog {
namespace {

class EveryKind : public testing::TestWithParam<ComponentKind> {};

TEST_P(EveryKind, NamesAreSortedAndUnique) {
  const std::span<const ComponentEntry> all = Catalog(GetParam());
  ASSERT_FALSE(all.empty());
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_LT(all[i - 1].name, all[i].name);
  }
}

TEST_P(EveryKind, EveryEntryMakesComponentsOfItsName) {
  for (const ComponentEntry& entry : Catalog(GetParam())) {
    EXPECT_FALSE(entry.help.empty()) << entry.name;
    const bool plug_in = !OriginOf(entry.kind, entry.name).empty();  // of the tests below
    if (plug_in || entry.kind == ComponentKind::kTuning) {
      continue;  // a tuning needs a model catalogue; tuning_test has it
    }
    const Result<Components> made = Make(entry.kind, {.name = std::string(entry.name)});
    ASSERT_TRUE(made.ok()) << made.error().message;
    const Components& parts = made.value();
    for (const Component* part : std::vector<const Component*>{
             parts.ordering.get(), parts.policy.get(), parts.selector.get(), parts.placement.get(),
             parts.packer.get(), parts.admission.get(), parts.grouping.get()}) {
      EXPECT_TRUE(part == nullptr || part->name() == entry.name) << entry.name;
    }
  }
}

TEST_P(EveryKind, AnUnknownNameIsAnsweredWithAllNames) {
  const Result<Components> made = Make(GetParam(), {.name = "nobody"});
  ASSERT_FALSE(made.ok());
  for (const ComponentEntry& entry : Catalog(GetParam())) {
    EXPECT_NE(made.error().message.find(entry.name), std::string::npos) << entry.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKind,
                         testing::Values(ComponentKind::kPolicy, ComponentKind::kPlacement,
                                         ComponentKind::kAdmission, ComponentKind::kGrouping,
                                         ComponentKind::kTuning),
                         [](const testing::TestParamInfo<ComponentKind>& one) {
                           return std::string(base::NameOf(one.param));
                         });

TEST(CatalogTest, GpusAreCountedOrNamedByThePolicyWhereNobodyChooses) {
  for (const std::string name : {"count", "gandiva"}) {
    const Components made = Make(ComponentKind::kPlacement, {.name = name}).value();
    EXPECT_FALSE(made.placement || made.packer) << name;
    EXPECT_EQ(EntryOf(ComponentKind::kPlacement, name).by_policy, name == "gandiva");
  }
  EXPECT_TRUE(Make(ComponentKind::kPlacement, {.name = "synergy"}).value().packer);
  EXPECT_FALSE(Make(ComponentKind::kPlacement, {.name = "synergy"}).value().placement);
}

TEST(CatalogTest, AnAdmissionMayLeaveTheVerdictToThePolicy) {
  EXPECT_TRUE(EntryOf(ComponentKind::kAdmission, "deadline").by_policy);
  EXPECT_FALSE(EntryOf(ComponentKind::kAdmission, "all").by_policy);
}

class Nobody final : public Admission {
 public:
  [[nodiscard]] std::string_view name() const override { return "closed"; }
  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& /*snapshot*/,
                                           Memory* /*memory*/) const override {
    return {};
  }
};

Result<Components> MakeNobody(const Options& /*options*/, const ComponentContext& /*context*/) {
  return Components{.admission = std::make_unique<Nobody>()};
}

TEST(CatalogTest, PlugInsAddComponentsOfEveryKind) {
  const ComponentEntry entry{ComponentKind::kAdmission, "closed", "admits nobody", {}, MakeNobody};
  ASSERT_TRUE(AddComponents(std::array{entry}, "a plug-in").ok());
  EXPECT_EQ(OriginOf(ComponentKind::kAdmission, "closed"), "a plug-in");
  EXPECT_EQ(OriginOf(ComponentKind::kPolicy, "closed"), "");
  EXPECT_TRUE(Make(ComponentKind::kAdmission, {.name = "closed"}).value().admission);
  const Status again = AddComponents(std::array{entry}, "another");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message,
            "admission 'closed' exists already (from a plug-in); expected another name");
}

TEST(CatalogTest, AnEntryThatMakesAnotherKindIsRefused) {
  const ComponentEntry entry{
      ComponentKind::kGrouping, "wrong-kind", "admits nobody", {}, MakeNobody};
  ASSERT_TRUE(AddComponents(std::array{entry}, "a plug-in").ok());
  EXPECT_EQ(Make(ComponentKind::kGrouping, {.name = "wrong-kind"}).error().message,
            "grouping 'wrong-kind' made no component; expected one of its kind");
}

Result<Components> MakeNothing(const Options& /*options*/, const ComponentContext& /*context*/) {
  return Components{};
}

TEST(CatalogTest, APlacementThatMakesNothingIsRefused) {
  const ComponentEntry entry{
      ComponentKind::kPlacement, "nowhere", "places nobody", {}, MakeNothing};
  ASSERT_TRUE(AddComponents(std::array{entry}, "a plug-in").ok());
  EXPECT_EQ(Make(ComponentKind::kPlacement, {.name = "nowhere"}).error().message,
            "placement 'nowhere' made no component; expected one of its kind");
}

TEST(CatalogTest, AComponentHasTheNameOfItsEntry) {
  const ComponentEntry entry{
      ComponentKind::kAdmission, "closed-too", "admits nobody", {}, MakeNobody};
  ASSERT_TRUE(AddComponents(std::array{entry}, "a plug-in").ok());
  EXPECT_EQ(Make(ComponentKind::kAdmission, {.name = "closed-too"}).error().message,
            "admission 'closed-too' made a component that calls itself 'closed'; expected the "
            "name of its entry");
}

TEST(CatalogTest, AllComponentsHaveTheNamesOfTheirEntries) {
  for (const ComponentKind kind :
       {ComponentKind::kPolicy, ComponentKind::kPlacement, ComponentKind::kAdmission,
        ComponentKind::kGrouping, ComponentKind::kTuning}) {
    for (const ComponentEntry& entry : Catalog(kind)) {
      if (!OriginOf(kind, entry.name).empty()) {
        continue;  // of the tests above
      }
      const Result<Components> made = Make(kind, {.name = std::string(entry.name)});
      if (!made.ok()) {  // it wants a file, say
        EXPECT_EQ(made.error().message.find("calls itself"), std::string::npos)
            << made.error().message;
      }
    }
  }
}

TEST(CatalogTest, ANameOfAnotherKindGetsAHint) {
  const std::string message = Make(ComponentKind::kPolicy, {.name = "first-fit"}).error().message;
  EXPECT_TRUE(message.ends_with("; 'first-fit' is a placement: --placement first-fit")) << message;
}

}  // namespace
}  // namespace trainyard::catalog
