// SPDX-License-Identifier: Apache-2.0
#include "results/write/html.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPage = "<script>__TRAINYARD_REPORT_DATA__</script><p>$& \\1</p>";

TEST(FillReportTest, PutsTheDataInItsPlace) {
  const Result<std::string> page = FillReport(kPage, R"({"a":"$& \\1"})");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page.value(), R"(<script>{"a":"$& \\1"}</script><p>$& \1</p>)");
}

TEST(FillReportTest, NoNameEndsTheElement) {
  const Result<std::string> page = FillReport(kPage, R"({"a":"</script><!--"})");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page.value(), R"(<script>{"a":"\u003c/script>\u003c!--"}</script><p>$& \1</p>)");
}

TEST(FillReportTest, ATemplateWithoutPlaceIsAnError) {
  const Result<std::string> page = FillReport("<html></html>", "{}");
  ASSERT_FALSE(page.ok());
  EXPECT_NE(page.error().message.find("__TRAINYARD_REPORT_DATA__"), std::string::npos);
}

class WriteReportTest : public testing::Test {
 public:
  ~WriteReportTest() override { fs::remove_all(folder_); }

 protected:
  WriteReportTest()
      : folder_(fs::path(testing::TempDir()) / ("trainyard-html-" + std::to_string(getpid()))),
        path_((folder_ / "deep" / "report.html").string()) {
    fs::remove_all(folder_);
  }

  [[nodiscard]] std::string Written() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(WriteReportTest, WritesThePageWithItsData) {
  const std::vector<RunResult> runs{HandMadeRun()};
  ASSERT_TRUE(WriteReport(runs, "trainyard compare", path_, kPage).ok());
  EXPECT_TRUE(Written().starts_with("<script>{\"format\":\"trainyard-report/2\","));
  EXPECT_TRUE(Written().ends_with("}</script><p>$& \\1</p>"));
}

TEST_F(WriteReportTest, HostileNamesStayText) {
  std::vector<RunResult> runs{HandMadeRun()};
  runs[0].label = runs[0].trace_path = runs[0].cluster_name = "</script><script>alert(1)";
  ASSERT_TRUE(WriteReport(runs, "</script>", path_, kPage).ok());
  const std::string page = Written();
  EXPECT_EQ(page.find("</script>"), page.rfind("</script>"));
  EXPECT_EQ(page.find("<script>", 1), std::string::npos);
}

TEST_F(WriteReportTest, NoRunsAreAnError) {
  const Status status = WriteReport({}, "", path_, kPage);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(WriteReportTest, AnUnwritablePlaceIsAnError) {
  std::ofstream(folder_) << "a file";
  const std::vector<RunResult> runs{HandMadeRun()};
  EXPECT_FALSE(WriteReport(runs, "", path_, kPage).ok());
}

}  // namespace
}  // namespace trainyard::results
