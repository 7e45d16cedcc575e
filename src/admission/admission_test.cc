// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "admission/catalog.h"

namespace trainyard {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto admission = MakeAdmission(ParseNamedOptions(text).value());
  return admission.ok() ? "no error" : admission.error().message;
}

TEST(AdmissionCatalogTest, NamesAreSortedAndUnique) {
  const std::span<const AdmissionEntry> catalog = AdmissionCatalog();
  ASSERT_FALSE(catalog.empty());
  for (std::size_t i = 1; i < catalog.size(); ++i) {
    EXPECT_LT(catalog[i - 1].name, catalog[i].name);
  }
}

TEST(AdmissionCatalogTest, EveryEntryMakesAnAdmissionOfItsName) {
  for (const AdmissionEntry& entry : AdmissionCatalog()) {
    const auto admission = MakeAdmission({.name = std::string(entry.name), .values = {}});
    ASSERT_TRUE(admission.ok()) << admission.error().message;
    EXPECT_EQ(admission.value()->name(), entry.name);
    EXPECT_FALSE(entry.help.empty()) << entry.name;
  }
}

TEST(AdmissionCatalogTest, AnUnknownNameIsAnsweredWithTheNearestAndAllNames) {
  std::string expected = "unknown admission 'al'; did you mean 'all'?; known: ";
  for (const AdmissionEntry& entry : AdmissionCatalog()) {
    expected += std::string(entry.name) + ", ";
  }
  EXPECT_EQ(ErrorOf("al") + ", ", expected);
}

TEST(AdmissionCatalogTest, AnUnknownOptionIsRefused) {
  EXPECT_EQ(ErrorOf("all:limit=3"), "admission 'all': unknown option 'limit'; known: none");
}

TEST(AllTest, EveryUnjudgedJobIsAdmittedInOrder) {
  const auto all = MakeAdmission({.name = "all", .values = {}}).value();
  const std::array unjudged{JobAt(7), JobAt(3)};
  const std::vector<Verdict> verdicts = all->Admit({.unjudged = unjudged}, nullptr);
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts[0].job, JobAt(7));
  EXPECT_EQ(verdicts[1].job, JobAt(3));
  EXPECT_EQ(verdicts[0].judgement, Judgement::kAdmit);
  EXPECT_EQ(verdicts[1].judgement, Judgement::kAdmit);
}

TEST(AllTest, NobodyToJudgeNeedsNoVerdict) {
  const auto all = MakeAdmission({.name = "all", .values = {}}).value();
  EXPECT_TRUE(all->Admit({}, nullptr).empty());
}

TEST(AllTest, RemembersNothing) {
  EXPECT_EQ(MakeAdmission({.name = "all", .values = {}}).value()->NewMemory(), nullptr);
}

}  // namespace
}  // namespace trainyard
