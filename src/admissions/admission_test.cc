// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "admissions/admissions.h"
#include "base/catalog_lookup.h"

namespace trainyard::admissions {
namespace {

Components Made(const std::string& text) {
  return base::MakeFrom(Admissions(), ComponentKind::kAdmission, ParseNamedOptions(text).value())
      .value();
}

std::string ErrorOf(const std::string& text) {
  const auto admission =
      base::MakeFrom(Admissions(), ComponentKind::kAdmission, ParseNamedOptions(text).value());
  return admission.ok() ? "no error" : admission.error().message;
}

TEST(AdmissionCatalogTest, AnUnknownNameIsAnsweredWithTheNearestAndAllNames) {
  std::string expected = "unknown admission 'al'; did you mean 'all'?; known: ";
  for (const ComponentEntry& entry : Admissions()) {
    expected += std::string(entry.name) + ", ";
  }
  EXPECT_EQ(ErrorOf("al") + ", ", expected);
}

TEST(AdmissionCatalogTest, AnUnknownOptionIsRefused) {
  EXPECT_EQ(ErrorOf("all:limit=3"), "admission 'all': unknown option 'limit'; known: none");
}

TEST(AllTest, EveryUnjudgedJobIsAdmittedInOrder) {
  const Components made = Made("all");
  const std::array unjudged{JobAt(7), JobAt(3)};
  const std::vector<Verdict> verdicts = made.admission->Admit({.unjudged = unjudged}, nullptr);
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts[0].job, JobAt(7));
  EXPECT_EQ(verdicts[1].job, JobAt(3));
  EXPECT_EQ(verdicts[0].judgement, Judgement::kAdmit);
  EXPECT_EQ(verdicts[1].judgement, Judgement::kAdmit);
}

TEST(AllTest, NobodyToJudgeNeedsNoVerdict) {
  const Components made = Made("all");
  EXPECT_TRUE(made.admission->Admit({}, nullptr).empty());
}

TEST(AllTest, RemembersNothing) { EXPECT_EQ(Made("all").admission->NewMemory(), nullptr); }

}  // namespace
}  // namespace trainyard::admissions
