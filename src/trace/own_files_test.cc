// SPDX-License-Identifier: Apache-2.0
// Trace files as people have them: what is read of them, and what is said of the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "support/scratch_folder.h"
#include "support/trace_files.h"
#include "trace/trace.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kOwnHeader = "job_id,submit_time,gpus,duration\n";

Result<Trace> ReadOwn(const std::string& rows, const TraceOptions& options = {}) {
  return ReadText(std::string(kOwnHeader) + rows, options);
}
std::string OwnError(const std::string& rows) { return ErrorOf(std::string(kOwnHeader) + rows); }

// ------------------------------------------------------------------- columns without a meaning

TEST(OwnFilesTest, AnIndexWithoutANameIsNotRead) {
  for (const std::string name : {"", "Unnamed: 0", "index", "level_0", "\"\""}) {
    const auto trace =
        ReadText(name + ",job_id,submit_time,gpus,duration\n0,a,0,1,10\n1,b,5,2,20\n");
    ASSERT_TRUE(trace.ok()) << name << trace.error().message;
    EXPECT_EQ(trace.value().format, "native");
    EXPECT_EQ(trace.value().jobs.at(1).name, "b");
    EXPECT_EQ(trace.value().jobs[1].duration, FromSeconds(20));
  }
}

TEST(OwnFilesTest, CommasAtTheEndOfLinesAreNoColumns) {
  for (const std::string text : {"job_id,submit_time,gpus,duration,\na,0,1,10,\n",
                                 "job_id,submit_time,gpus,duration,,\r\n"
                                 "a,0,1,10,,\r\n",
                                 "job_id,submit_time,gpus,duration,\na,0,1,10\n"}) {
    const auto trace = ReadText(text);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(trace.value().jobs.at(0).duration, FromSeconds(10));
  }
}

TEST(OwnFilesTest, AColumnWithoutANameThatHoldsSomethingIsNamed) {
  EXPECT_EQ(ErrorOf("job_id,,submit_time,gpus,duration\na,0,0,1,10\nb,ann,5,2,20\n"),
            "t.csv:3: column 2 has no name and holds 'ann'; expected its name in the header");
  EXPECT_EQ(ErrorOf("index,job_id,submit_time,gpus,duration\nx,a,0,1,10\n"),
            "t.csv:2: column 'index' is 'x'; expected the number of a row, which an index of that "
            "name has");
}

TEST(OwnFilesTest, SurplusFieldsAreNamed) {
  EXPECT_EQ(OwnError("a,0,1,10,\n"),
            "t.csv:2: 5 fields; expected 4 as in the header (a comma at the end of the line?)");
  EXPECT_EQ(OwnError("1,a,0,1,10\n"),
            "t.csv:2: 5 fields; expected 4 as in the header (a column that the header does not "
            "name?)");
}

TEST(OwnFilesTest, LogsHaveIndicesToo) {
  const auto trace = ReadText(
      ",job_id,user,vc,gpu_num,state,submit_time,start_time,end_time\n"
      "0,1,u,v,8,COMPLETED,2020-04-01 10:00:00,2020-04-01 10:01:00,2020-04-01 11:00:00\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "helios");
  EXPECT_EQ(trace.value().jobs.at(0).gpus, 8);
}

// ------------------------------------------------------------------------------- other files

// One line that says both.
void ExpectTold(std::string_view text, std::string_view what, std::string_view advice) {
  const ScratchFolder folder;
  for (const std::string& bytes : {std::string(text), folder.Gzip(text)}) {
    const std::string error = ErrorOf(bytes);
    EXPECT_NE(error.find(what), std::string::npos) << error;
    EXPECT_NE(error.find(advice), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_LT(error.size(), 500U) << error;
  }
}

TEST(OwnFilesTest, OtherSeparatorsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> separators{
      {";", "fields separated by ';'"},
      {"\t", "fields separated by tabs"},
      {"|", "fields separated by '|'"},
      {"  ", "fields separated by blanks"}};
  for (const auto& [separator, what] : separators) {
    ExpectTold(base::ReplaceAll("job_id,submit_time,gpus,duration\na,0,1,10\n", ",", separator),
               what, "expected commas: python3 -c ");
  }
  ExpectTold("sep=;\njob_id;submit_time;gpus;duration\na;0;1;10\n", "Excel's line 'sep='",
             "commas");
  ExpectTold(";job_id;submit_time;gpus;duration\n0;a;0;1;10\n", "separated by ';'", "commas");
  EXPECT_EQ(OwnError("a;0;1;10\n"),
            "t.csv:2: 1 fields; expected 4 as in the header (separated by ';'?)");
}

TEST(OwnFilesTest, ACommentBeforeTheHeaderIsNamed) {
  for (const std::string comment :
       {"# exported 2026-11-26\n", "#jobs, of \"ann\"\n", "// x\n", "% x\n", "# ", "; x\n"}) {
    ExpectTold(comment + "job_id,submit_time,gpus,duration\na,0,1,10\n",
               "t.csv:1: a comment line before the header, or a mark in front of it", "grep -v '^");
  }
}

TEST(OwnFilesTest, BinaryFilesAreNamed) {
  using namespace std::string_view_literals;
  ExpectTold("PAR1\x15\x04\x15\0\xFFPAR1"sv, "a Parquet file", "read_parquet");
  ExpectTold("PAR1"sv, "a Parquet file", "read_parquet");
  ExpectTold("PK\x03\x04\x14\0\x06\0"sv, "a zip archive or an Excel workbook", "as CSV");
  ExpectTold("\x89HDF\r\n\x1a\n\0"sv, "an HDF5 file", "read_hdf");
  ExpectTold("SQLite format 3\0\x10"sv, "an SQLite database", "sqlite3");
  ExpectTold("BZh91AY&SY\xFF\0"sv, "packed with bzip2", "bunzip2");
  ExpectTold(
      "\xFD"
      "7zXZ\0\0"sv,
      "packed with xz", "unxz");
  ExpectTold("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n"sv, "Git LFS",
             "git lfs pull");
  ExpectTold("<!DOCTYPE html>\n<html></html>\n"sv, "HTML", "CSV");
}

TEST(OwnFilesTest, AJsonArrayIsNamed) {
  for (const std::string_view text : {R"([{"job_id":"a","submit_time":0,"gpus":1,"duration":10}])",
                                      "[\n {\n  \"job_id\": 1}]\n", "\xEF\xBB\xBF []"}) {
    ExpectTold(text, "t.csv:1: a JSON array", "jq -c '.[]'");
  }
  EXPECT_TRUE(Says(ErrorOf("[]", {.format = "native"}), "a JSON array"));
  EXPECT_TRUE(Says(ErrorOf("[]", {.format = "jsonl"}), "a JSON array"));
}

TEST(OwnFilesTest, ManyColumnsMakeNoLongMessage) {
  std::string header = "a0";
  for (int i = 1; i < 200; ++i) {
    header += ",a-rather-long-name-of-a-column-" + std::to_string(i);
  }
  ExpectTold(header + "\n", "... (200 in all) fit no trace format", "--map");
}

// ------------------------------------------------------------------------------------ own names

constexpr std::string_view kOwnNames =
    "id,arrival,n_gpus,runtime,comment\na,0,4,10,x\nb,7,2,20,y\n";

TEST(OwnFilesTest, ColumnsMayHaveNamesOfTheirOwn) {
  const auto trace = ReadText(
      kOwnNames, {.columns = "job_id=id,submit_time=arrival,gpus=n_gpus,duration=runtime"});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "native");
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().jobs[1].name, "b");
  EXPECT_EQ(trace.value().jobs[1].submit, AtSeconds(7));
  EXPECT_EQ(trace.value().jobs[1].gpus, 2);
  ASSERT_EQ(trace.value().notes.size(), 1U);
  EXPECT_TRUE(trace.value().notes[0].ends_with("t.csv:1: columns that are not read: comment"));
}

TEST(OwnFilesTest, AColumnThatIsNamedGoesBeforeOneOfThatName) {
  const auto trace =
      ReadText("job_id,submit_time,gpus,asked,duration\na,0,9,2,10\n", {.columns = "gpus=asked"});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.at(0).gpus, 2);
  const auto swapped = ReadText("job_id,duration,gpus,submit_time\na,0,9,2\n",
                                {.columns = "duration=submit_time,submit_time=duration"});
  ASSERT_TRUE(swapped.ok()) << swapped.error().message;
  EXPECT_EQ(swapped.value().jobs.at(0).submit, AtSeconds(0));
  EXPECT_EQ(swapped.value().jobs.at(0).duration, FromSeconds(2));
}

TEST(OwnFilesTest, OtherFormatsAndLogsTakeOwnNamesToo) {
  const auto tiresias = ReadText("job,g,submit_time,model_name,duration\n1,8,30,vgg11,147\n",
                                 {.format = "tiresias", .columns = "job_id=job,num_gpu=g"});
  ASSERT_TRUE(tiresias.ok()) << tiresias.error().message;
  EXPECT_EQ(tiresias.value().jobs.at(0).gpus, 8);
  const auto helios = ReadText(
      "id,user,vc,gpus,state,submit_time,start_time,end_time\n"
      "1,u,v,8,COMPLETED,2020-04-01 10:00:00,2020-04-01 10:01:00,2020-04-01 11:00:00\n",
      {.format = "helios", .columns = "job_id=id,gpu_num=gpus"});
  ASSERT_TRUE(helios.ok()) << helios.error().message;
  EXPECT_EQ(helios.value().jobs.at(0).gpus, 8);
}

TEST(OwnFilesTest, RefusesNamesThatSayNothing) {
  const auto error = [](const std::string& columns, const std::string& format = "") {
    const auto trace = ReadText(kOwnNames, {.format = format, .columns = columns});
    return trace.ok() ? std::string("read") : trace.error().message;
  };
  EXPECT_EQ(error("n_gpus=gpus"),
            "--map n_gpus=gpus; expected the name of format native first: --map gpus=n_gpus");
  EXPECT_EQ(error("gpu=n_gpus", "native"),
            "--map gpu=n_gpus: format native has no column 'gpu'; did you mean 'gpus'?");
  EXPECT_EQ(error("gpus"),
            "--map 'gpus'; expected NAME=COLUMN with the format's name and the file's, such as "
            "gpus=n_gpus, and ',' between several");
  EXPECT_EQ(error("gpus=a,gpus=b"), "--map: 'gpus' is there twice; expected each name once");
  EXPECT_TRUE(
      error("gpus=ngpus")
          .ends_with(
              "t.csv:1: no column 'ngpus', which --map names; the columns are id, arrival, n_gpus, "
              "runtime, comment"))
      << error("gpus=ngpus");
  EXPECT_TRUE(error("gpus=n_gpus").find("no column job_id") != std::string::npos);
  const auto swf =
      ReadText("1 0 10 100 4 -1 -1 4 200 -1 1 1 1 1 1 -1 -1 -1\n", {.columns = "gpus=n_gpus"});
  ASSERT_FALSE(swf.ok());
  EXPECT_TRUE(Says(swf.error().message, "(--map) have no effect on format 'swf'"));
}

// ------------------------------------------------------------------------------ times and numbers

TEST(OwnFilesTest, LengthsOfTimeAreReadAsTheyAreWritten) {
  const std::vector<std::pair<std::string, double>> lengths{{"02:00:00", 7200},
                                                            {"1-02:00:00", 93'600},
                                                            {"10m", 600},
                                                            {"1h30m", 5400},
                                                            {"90s", 90},
                                                            {"0:00:01.5", 1.5},
                                                            {"100:00:00", 360'000},
                                                            {"1 days 02:00:00", 93'600},
                                                            {"1-02:30", 95'400},
                                                            {"2d", 172'800}};
  for (const auto& [text, seconds] : lengths) {
    const auto trace = ReadOwn("a,0,1," + text + "\n");
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(trace.value().jobs.at(0).duration, FromSeconds(seconds)) << text;
  }
  for (const std::string bad :
       {"10:30", "1:99:00", "-02:00:00", "10 min", "2024-03", "02:00:", "x"}) {
    EXPECT_EQ(OwnError("a,0,1," + bad + "\n"),
              "t.csv:2: column 'duration' is '" + bad +
                  "'; expected a number of seconds > 0 and <= 9000000000, or a time such as "
                  "02:00:00, 1-02:00:00, 10m");
  }
}

TEST(OwnFilesTest, DatesCountFromTheFirstSubmit) {
  for (const std::string zone : {"", "Z", "+02:00"}) {
    const auto trace = ReadText(
        "job_id,submit_time,gpus,duration,deadline,begin\n"
        "a,2024-03-01T10:00:00" +
        zone + ",1,60,2024-03-01 12:00:00" + zone +
        ",\n"
        "b,2024-03-01T09:00:00" +
        zone + ",1,1m,,2024-03-01 09:30:00" + zone + "\n");
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(trace.value().jobs[0].submit, AtSeconds(3600));
    EXPECT_EQ(trace.value().jobs[0].deadline, AtSeconds(10'800));
    EXPECT_EQ(trace.value().jobs[1].submit, AtSeconds(0));
    EXPECT_EQ(trace.value().jobs[1].traits->begin, AtSeconds(1800));
    EXPECT_FALSE(trace.value().origin.empty());
  }
}

TEST(OwnFilesTest, DatesAreHandedOutFromTheFirstSubmitToo) {
  const ScratchFolder folder;
  std::vector<JobSpec> jobs;
  const auto facts = ForEachJob(
      folder.Write("t.csv", std::string(kOwnHeader) +
                                "a,2024-03-01 10:00:00,1,60\nb,2024-03-01 09:00:00,1,60\n"),
      {}, {.on_job = [&](JobSpec& job, std::int64_t /*line*/) -> Status {
        jobs.push_back(job);
        return {};
      }});
  ASSERT_TRUE(facts.ok()) << facts.error().message;
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].submit, AtSeconds(3600));
  EXPECT_EQ(jobs[1].submit, AtSeconds(0));
  EXPECT_EQ(facts.value().origin, "2024-03-01 09:00:00");
}

TEST(OwnFilesTest, AllSubmitsAreDatesOrNone) {
  EXPECT_EQ(OwnError("a,2024-03-01 10:00:00,1,60\nb,5,1,60\n"),
            "t.csv:3: column 'submit_time' is '5'; expected a time such as 2020-04-01 00:00:05, "
            "with a zone or without");
  EXPECT_EQ(OwnError("a,5,1,60\nb,2024-03-01 10:00:00,1,60\n"),
            "t.csv:3: column 'submit_time' is '2024-03-01 10:00:00'; expected a number of seconds "
            ">= 0 and <= 9000000000, as in the rows before; a date in each row or in none");
  EXPECT_EQ(OwnError("a,2024-03-01 10:00:00,1,60\nb,2024-03-01 10:00:00Z,1,60\n"),
            "t.csv:3: column 'submit_time' is '2024-03-01 10:00:00Z'; expected a time without a "
            "zone, as in line 2");
}

TEST(OwnFilesTest, NumbersMayHaveAPointAndZeros) {
  const auto trace =
      ReadText("job_id,submit_time,gpus,duration,best_effort\n17.0,0.0,4.0,10.0,True\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.at(0).name, "17.0");
  EXPECT_EQ(trace.value().jobs[0].gpus, 4);
  EXPECT_TRUE(trace.value().jobs[0].best_effort);
  EXPECT_EQ(OwnError("a,0,4.5,10\n"),
            "t.csv:2: column 'gpus' is '4.5'; expected an integer from 0 to 6400000");
}

// -------------------------------------------------------------------------------- all bad rows

std::size_t LinesOf(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
}

TEST(OwnFilesTest, AllBadRowsAreToldAtOnce) {
  const ScratchFolder folder;
  const std::string path = folder.Write(
      "t.csv", std::string(kOwnHeader) + "a,0,-2,5\nb,0,1,5\nc,x,1,5\nd,0\na,0,1,-5\n");
  const auto trace = ReadTrace(path);
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(
      trace.error().message,
      path + ":2: column 'gpus' is '-2'; expected an integer from 0 to 6400000\n" + path +
          ":4: column 'submit_time' is 'x'; expected a number of seconds >= 0 and <= "
          "9000000000, or a time such as 02:00:00, 1-02:00:00, 10m\n" +
          path + ":5: 2 fields; expected 4 as in the header\n" + path +
          ":6: column 'duration' is '-5'; expected a number of seconds > 0 and <= 9000000000");
}

TEST(OwnFilesTest, TwentyBadRowsAreEnough) {
  std::string rows;
  for (int i = 0; i < 20; ++i) {
    rows += "a" + std::to_string(i) + ",0,-1,5\n";
  }
  EXPECT_EQ(LinesOf(OwnError(rows)), 20U);
  const std::string error = OwnError(rows + "x,0,-1,5\ny,0,-1,5\n");
  EXPECT_EQ(LinesOf(error), 21U);
  EXPECT_TRUE(
      error.ends_with("t.csv: there are more bad rows than these 20; --skip-bad-rows "
                      "leaves all of them out"))
      << error;
}

TEST(OwnFilesTest, BadRowsOfLogsAndLinesAreToldAtOnceToo) {
  EXPECT_EQ(LinesOf(ErrorOf("job_id,user,vc,gpu_num,state,submit_time,start_time,end_time\n"
                            "1,u,v,x,C,2020-04-01 10:00:00,,\n2,u,v,8\n3,u,v,1,C,today,,\n")),
            3U);
  EXPECT_EQ(LinesOf(ErrorOf("{\"job_id\":\"a\"}\n{\"job_id\":\"b\"}\n")), 2U);
  EXPECT_EQ(LinesOf(ErrorOf("A3C\tc\t-n\t0\tx\t40\t1\nA3C\tc\t-n\t0\t5\t40\t0\n")), 2U);
  EXPECT_EQ(LinesOf(ErrorOf(R"([{"jobid":"a","attempts":1},{"jobid":"b","attempts":2}])")), 2U);
}

TEST(OwnFilesTest, TextThatEndsTheReadingFollowsTheBadRows) {
  const std::string error = OwnError("a,0,-1,5\nb,0,1,\"5\n");
  EXPECT_EQ(LinesOf(error), 2U) << error;
  EXPECT_TRUE(error.ends_with("a quoted field that never ends; expected a closing quote")) << error;
}

}  // namespace
}  // namespace trainyard::trace
