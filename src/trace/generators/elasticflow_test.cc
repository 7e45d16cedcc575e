// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/elasticflow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "io/file.h"
#include "support/reference.h"
#include "support/scratch_folder.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

constexpr ElasticflowOptions kMany{
    .jobs = 5000, .mean_interarrival = 600, .seed = 3, .best_effort_share = 0.4};

// All models with 1 to 16 GPUs and a rate of one iteration per second and GPU.
std::string PublishedProfiles() {
  std::string text = "model,batch_size,gpus,iterations_per_second\n";
  for (const std::string_view model :
       {"resnet50,64", "resnet50,128", "resnet50,256", "vgg16,64", "vgg16,128", "vgg16,256",
        "inception3,64", "inception3,128", "gpt2,128", "gpt2,256", "bert,128", "bert,64",
        "deepspeech2,64", "deepspeech2,32"}) {
    for (const int gpus : {1, 2, 4, 8, 16}) {
      text += std::string(model) + "," + std::to_string(gpus) + "," + std::to_string(gpus) + "\n";
    }
  }
  return text;
}

profile::ThroughputTable Table(const std::string& text = PublishedProfiles()) {
  const ScratchFolder folder;
  return profile::ThroughputTable::Read(folder.Write("p.csv", text)).value();
}

std::vector<JobSpec> Generate(const ElasticflowOptions& options) {
  const Result<std::vector<JobSpec>> jobs = GenerateElasticflowTrace(options, Table());
  EXPECT_TRUE(jobs.ok()) << (jobs.ok() ? "" : jobs.error().message);
  return jobs.ok() ? jobs.value() : std::vector<JobSpec>();
}

template <typename Predicate>
double FlowShare(const std::vector<JobSpec>& jobs, const Predicate& predicate) {
  return static_cast<double>(std::count_if(jobs.begin(), jobs.end(), predicate)) /
         static_cast<double>(jobs.size());
}

// A published trace and the options that give its bytes.
struct PublishedFlow {
  const char* file;
  ElasticflowOptions options;
};

void PrintTo(const PublishedFlow& one, std::ostream* out) { *out << one.file; }

class PublishedTrace : public testing::TestWithParam<PublishedFlow> {};

TEST_P(PublishedTrace, ComesOutByteForByte) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string data = Reference() + "/data/elasticflow";
  const auto profiles = profile::ThroughputTable::Read(data + "/throughputs_A100");
  ASSERT_TRUE(profiles.ok()) << profiles.error().message;
  const auto jobs = GenerateElasticflowTrace(GetParam().options, profiles.value());
  ASSERT_TRUE(jobs.ok()) << jobs.error().message;
  EXPECT_EQ(WriteElasticflowTrace(jobs.value()),
            io::ReadFile(data + "/traces/" + GetParam().file).value());
}

// The second and third were made with the deadline seeds given here.
INSTANTIATE_TEST_SUITE_P(
    Elasticflow, PublishedTrace,
    testing::Values(
        PublishedFlow{"100jobs_1500lam.csv", OptionsOfFigure(10).value()},
        PublishedFlow{"300jobs_1500lam.csv",
                      {.jobs = 300, .mean_interarrival = 1500, .deadline_seed = 5}},
        PublishedFlow{
            "200jobs_900lam_be0.3.csv",
            {.jobs = 200, .mean_interarrival = 900, .best_effort_share = 0.3, .deadline_seed = 7}}),
    [](const testing::TestParamInfo<PublishedFlow>& one) {
      return "Jobs" + std::to_string(one.param.options.jobs);
    });

// Like the above, for readers without the published data.
TEST(GenerateElasticflowTest, GivesTheFirstJobsOfFigure10) {
  ElasticflowOptions options = OptionsOfFigure(10).value();
  options.jobs = 3;
  EXPECT_EQ(WriteElasticflowTrace(Generate(options)),
            "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\n"
            "0,0,3930,resnet50,5896,256,1,3930,0\n"
            "1,4686,4830,gpt2,11932,256,1,4830,0\n"
            "2,9116,752,deepspeech2,10244,32,1,752,0\n");
}

TEST(GenerateElasticflowTest, FollowsThePublishedDistributions) {
  const std::vector<JobSpec> jobs = Generate(kMany);
  EXPECT_NEAR(FlowShare(jobs, [](const JobSpec& job) { return job.gpus == 1; }), 0.83, 0.02);
  EXPECT_NEAR(FlowShare(jobs, [](const JobSpec& job) { return job.gpus == 8; }), 0.10, 0.02);
  EXPECT_NEAR(FlowShare(jobs, [](const JobSpec& job) { return job.model == "bert"; }), 2 / 14.0,
              0.02);
  EXPECT_NEAR(FlowShare(jobs, [](const JobSpec& job) { return job.best_effort; }), 0.4, 0.02);
  EXPECT_NEAR(Seconds(jobs.back().submit) / kMany.jobs, 600, 30);
}

TEST(GenerateElasticflowTest, DeadlinesLieWithinTheFactors) {
  ElasticflowOptions options = kMany;
  options.least_deadline_factor = 1.25;
  options.most_deadline_factor = 2;
  for (const JobSpec& job : Generate(options)) {
    const double factor = Seconds(*job.deadline - job.submit) / Seconds(*job.duration);
    EXPECT_GE(factor, 1.248);
    EXPECT_LE(factor, 2.003);
  }
}

TEST(GenerateElasticflowTest, TheDeadlineSeedChangesDeadlinesAndBestEffortOnly) {
  ElasticflowOptions other = kMany;
  other.deadline_seed = 99;
  std::vector<JobSpec> a = Generate(kMany);
  std::vector<JobSpec> b = Generate(other);
  EXPECT_NE(WriteElasticflowTrace(a), WriteElasticflowTrace(b));
  for (std::vector<JobSpec>* jobs : {&a, &b}) {
    for (JobSpec& job : *jobs) {
      job.deadline.reset();
      job.best_effort = false;
    }
  }
  EXPECT_EQ(WriteElasticflowTrace(a), WriteElasticflowTrace(b));
}

TEST(GenerateElasticflowTest, WithoutADeadlineSeedItIsTheFifthStream) {
  ElasticflowOptions other = kMany;
  other.deadline_seed = kMany.seed + 4;
  EXPECT_EQ(WriteElasticflowTrace(Generate(kMany)), WriteElasticflowTrace(Generate(other)));
}

TEST(GenerateElasticflowTest, KeepsToTheLargestJob) {
  ElasticflowOptions options = kMany;
  options.largest_job = 6;
  for (const JobSpec& job : Generate(options)) {
    EXPECT_LE(job.gpus, 4);
  }
}

TEST(GenerateElasticflowTest, KnowsTheFiguresOfThePaper) {
  EXPECT_EQ(OptionsOfFigure(9)->jobs, 1000);
  EXPECT_EQ(OptionsOfFigure(11)->mean_interarrival, 900);
  EXPECT_FALSE(OptionsOfFigure(8).has_value());
}

TEST(GenerateElasticflowTest, RefusesProfilesOfOtherModels) {
  const auto jobs = GenerateElasticflowTrace(
      kMany, Table("model,batch_size,gpus,iterations_per_second\nresnet50,64,1,2\n"));
  ASSERT_FALSE(jobs.ok());
  EXPECT_EQ(jobs.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(jobs.error().message,
            "no profile of 'resnet50' with batch size 128; expected ElasticFlow's");
}

TEST(GenerateElasticflowTest, RefusesAProfileWithoutTheGpusDrawn) {
  std::string text = PublishedProfiles();
  const std::string cell = "gpt2,256,1,1\n";
  text.erase(text.find(cell), cell.size());
  const auto jobs = GenerateElasticflowTrace(kMany, Table(text));
  ASSERT_FALSE(jobs.ok());
  EXPECT_TRUE(jobs.error().message.starts_with(
      "no rate of 'gpt2' with batch size 256 on 1 GPUs that gives an iteration in "))
      << jobs.error().message;
}

TEST(GenerateElasticflowTest, RefusesTimesThatNoTraceHolds) {
  ElasticflowOptions options = kMany;
  options.mean_interarrival = 1e9;
  const auto jobs = GenerateElasticflowTrace(options, Table());
  ASSERT_FALSE(jobs.ok());
  EXPECT_EQ(jobs.error().code, ErrorCode::kInvalidArgument);
}

TEST(WriteElasticflowTraceTest, IsReadBackAsTheSameJobs) {
  const ScratchFolder folder;
  std::vector<JobSpec> jobs = Generate({.jobs = 50, .mean_interarrival = 100});
  jobs[0].deadline.reset();
  jobs[1].name = "a,b";
  const auto trace = ReadTrace(folder.Write("t.csv", WriteElasticflowTrace(jobs)));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "elasticflow");
  EXPECT_EQ(WriteNativeTrace(trace.value().jobs), WriteNativeTrace(jobs));
}

}  // namespace
}  // namespace trainyard::trace
