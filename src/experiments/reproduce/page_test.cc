// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/comparison.h"

#include <gtest/gtest.h>

#include "support/small_figure.h"

namespace trainyard::experiments {
namespace {

TEST(PageTest, HoldsImagesTablesAndReasons) {
  FigureOutcome outcome = SmallOutcome();
  outcome.images = {"<?xml version=\"1.0\"?>\n<svg viewBox=\"0 0 640 400\">one</svg>", ""};
  outcome.failed = {"two/c/A: it broke"};
  const std::string page = FiguresPage(std::span(&outcome, 1), "trainyard reproduce \"x\"");
  EXPECT_NE(page.find("<figure tabindex=\"0\" style=\"--drawn: 640px; width: var(--drawn)\"><svg "
                      "viewBox=\"0 0 640 400\">one</svg>"),
            std::string::npos);
  EXPECT_EQ(page.find("<?xml"), std::string::npos);
  EXPECT_NE(page.find("A &lt;small> figure"), std::string::npos);
  EXPECT_NE(page.find("<section id=\"x-small\">"), std::string::npos);
  EXPECT_NE(page.find("href=\"#x-small\""), std::string::npos);
  EXPECT_NE(page.find("class=\"equal\">100.0"), std::string::npos);
  EXPECT_NE(page.find("<td title=\"a log\">100.02</td>"), std::string::npos);
  EXPECT_NE(page.find("700<span class=\"range\">other settings</span>"), std::string::npos);
  EXPECT_NE(page.find("<li><b>testbed</b>: measured on &lt;machines></li>"), std::string::npos);
  EXPECT_NE(page.find("Not run, missing trace"), std::string::npos);
  EXPECT_NE(page.find("Failed: two/c/A: it broke"), std::string::npos);
  EXPECT_NE(page.find("another program"), std::string::npos);
  EXPECT_NE(page.find("trainyard reproduce &quot;x&quot;"), std::string::npos);
}

TEST(PageTest, PlacesAndNotesAreColumnsOnlyWhereThereAreSome) {
  FigureOutcome outcome = SmallOutcome();
  const std::string with = FiguresPage(std::span(&outcome, 1), "");
  for (ComparisonRow& row : outcome.rows) {
    row.place.clear();
    row.note.clear();
  }
  const std::string without = FiguresPage(std::span(&outcome, 1), "");
  for (const char* name : {"at", "note"}) {
    const std::string heading = std::string("<th class=\"left\">") + name + "</th>";
    EXPECT_NE(with.find(heading), std::string::npos) << name;
    EXPECT_EQ(without.find(heading), std::string::npos) << name;
  }
}

TEST(PageTest, WhatIsWiderThanThePageIsScrolledByKeys) {
  FigureOutcome outcome = SmallOutcome();
  outcome.images = {"<svg viewBox=\"0 0 640 400\"></svg>"};
  const std::string page = FiguresPage(std::span(&outcome, 1), "");
  EXPECT_NE(page.find("role=\"region\" tabindex=\"0\" aria-label=\"Summary\">"), std::string::npos);
  EXPECT_NE(page.find("role=\"region\" tabindex=\"0\" aria-label=\"Values of x/small\">"),
            std::string::npos);
  EXPECT_NE(page.find("<figure tabindex=\"0\""), std::string::npos);
}

}  // namespace
}  // namespace trainyard::experiments
