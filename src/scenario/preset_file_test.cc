// SPDX-License-Identifier: Apache-2.0
// Presets from users' files: what they mean, what is refused, and that docs/presets.md lists their
// keys.
#include "scenario/preset_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <sstream>

#include "base/text.h"
#include "io/file.h"
#include "scenario/preset_keys.h"
#include "scenario/scenario.h"
#include "support/measured_trainings.h"
#include "support/scratch_folder.h"

namespace trainyard::scenario {
namespace {

const std::string kSource = TRAINYARD_SOURCE_DIR;

// A file is kept for the life of the program, so each has a folder of its own.
class UserPresetTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) {
    return folders_.emplace_back().Write("mine.toml", text);
  }
  ResolvedPreset Resolve(const PresetRequest& request) {
    const Result<ResolvedPreset> preset = ResolvePreset(request);
    EXPECT_TRUE(preset.ok()) << preset.error().message;
    return preset.ok() ? preset.value() : ResolvedPreset{};
  }
  // The message from the file's name on.
  std::string ErrorOf(const std::string& text) {
    const Result<ResolvedPreset> preset = ResolvePreset({.preset = Write(text)});
    if (preset.ok()) {
      return "no error";
    }
    EXPECT_EQ(preset.error().code, ErrorCode::kBadInput) << text;
    const std::string& message = preset.error().message;
    return message.substr(std::min(message.size(), message.find("mine.toml")));
  }

  std::list<ScratchFolder> folders_;
};

// ------------------------------------------------------------------- by path as by name

class EveryPresetByPath : public testing::TestWithParam<std::string_view> {
 protected:
  InputPaths Paths() {
    const std::string name(GetParam());
    if (name == "torchloader") {
      return {.trace = kSource + "/data/example_loader/workload.csv",
              .cluster = kSource + "/data/example_loader/cluster.toml",
              .profiles = kSource + "/data/example_loader/models.csv"};
    }
    if (name == "synergy") {
      (void)folder_.Write("model_profiles.csv",
                          "cpu_per_gpu_ratio,model,gpus,best_cpus_per_gpu,best_mem_gb_per_gpu,"
                          "best_sspeed_per_gpu,batch_size,speedup,iter_time_s\n"
                          "4,v,1,7,10,10,32,1.75,1\n4,t,1,1,10,10,32,1,1\n");
      (void)folder_.Write("throughput_matrix.csv",
                          "cpu_per_gpu_ratio,model,gpus,cpus_per_gpu,mem_10_gb\n"
                          "4,v,1,1,0.25\n4,v,1,7,1.75\n4,t,1,1,1\n");
      return {
          .trace = folder_.Write("t.csv",
                                 "job_id,model,arrival_s,total_iterations,gpus\n"
                                 "0,v,0.5,1050,1\n1,t,0.5,300,1\n2,t,7,900,1\n"),
          .cluster = folder_.Write("c.ini",
                                   "[CLUSTER]\nracks=1\nservers_per_rack=1\ngpus_per_server=2\n"
                                   "cpus_per_server=8\ndram_per_server=20\nsspeed_per_server=0\n"),
          .profiles = folder_.path()};
    }
    if (name == "pollux") {
      WriteTraining(folder_, "net");
      return {.trace = folder_.Write("t.csv",
                                     "name,time,application,num_replicas,batch_size\n"
                                     "a,0,net,1,32\nb,20,net,2,64\n"),
              .cluster = "2x4",
              .profiles = folder_.path()};
    }
    if (name == "sia") {
      WriteTypedTraining(folder_);
      return {.trace = folder_.Write("t.csv",
                                     "name,time,application,num_replicas,batch_size\n"
                                     "a,0,net,1,32\nb,20,net,2,64\n"),
              .cluster = folder_.Write("c.toml",
                                       "[[nodes]]\ngpus = 2\ncount = 2\ngpu_type = \"slow\"\n"
                                       "[[nodes]]\ngpus = 4\ngpu_type = \"fast\"\n"),
              .profiles = folder_.path()};
    }
    const std::string example = kSource + "/data/example_";
    if (name == "muri") {  // with the stage times that the bundled trace does not state
      return {.trace = folder_.Write(
                  "t.csv",
                  "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
                  "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\n"
                  "A,1,0,1000,bert,4,178000,0,178,0.5,160,0,0\n"
                  "B,1,100000,400,dqn,128,196000,100000,490,446,8,0,1\n"
                  "C,1,104000,1000,vgg16,16,107000,4000,107,117,68,0,0\n"),
              .cluster = example + "cluster.toml"};
    }
    return {.trace = example + "trace.csv",
            .cluster = example + "cluster.toml",
            .profiles = example + "profiles.csv"};
  }

  ScratchFolder folder_;
};

TEST_P(EveryPresetByPath, GivesTheSameJournal) {
  const std::string name(GetParam());
  const Result<Inputs> inputs = ReadInputs(Paths());
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  const std::string path = kSource + "/presets/" + name + ".toml";
  const Result<results::RunResult> by_name =
      RunScenario(inputs.value(), {.names = {.preset = name}});
  const Result<results::RunResult> by_path =
      RunScenario(inputs.value(), {.names = {.preset = path}});
  ASSERT_TRUE(by_name.ok()) << by_name.error().message;
  ASSERT_TRUE(by_path.ok()) << by_path.error().message;
  EXPECT_EQ(by_path.value().journal_digest, by_name.value().journal_digest);
  EXPECT_EQ(by_path.value().preset, path);
  EXPECT_EQ(by_path.value().preset_sha256, io::Sha256OfFile(path).value());
  EXPECT_EQ(by_name.value().preset_sha256, "");
}

INSTANTIATE_TEST_SUITE_P(OfTheTree, EveryPresetByPath, testing::ValuesIn(PresetNames()),
                         [](const testing::TestParamInfo<std::string_view>& one) {
                           return std::string(one.param);
                         });

// ----------------------------------------------------------------------------------- on a base

TEST_F(UserPresetTest, AFileOnABaseChangesWhatItSaysAndNothingElse) {
  const std::string mine = Write(
      "base = \"muri\"\n[debt]\npay = \"delay\"\n[overhead.by_gpus]\nbert = {2 = 12}\n"
      "[policies.shortest.walk]\nkeep_running = true\n");
  const ResolvedPreset muri = Resolve({.preset = "muri"});
  const ResolvedPreset changed = Resolve({.preset = mine});
  EXPECT_EQ(changed.rules.debt.pay, model::Debt::Pay::kDelay);
  EXPECT_EQ(changed.rules.debt.charge, muri.rules.debt.charge);
  EXPECT_EQ(changed.work, muri.work);
  EXPECT_EQ(changed.stages.slowdown, muri.stages.slowdown);
  EXPECT_EQ(changed.policy.name, "srtf");
  EXPECT_EQ(changed.placement.values, muri.placement.values);
  EXPECT_TRUE(changed.walk->keep_running);
  EXPECT_EQ(changed.walk->former_rank, muri.walk->former_rank);
  const auto cost = [&](const std::string& model, int gpus) {
    return Seconds(changed.overheads.Cost(Change::kStart, {.model = model}, gpus, 8, false));
  };
  EXPECT_EQ(cost("bert", 1), 10);
  EXPECT_EQ(cost("bert", 2), 12);
  EXPECT_EQ(cost("a2c", 1), 38);
  EXPECT_EQ(Resolve({.preset = "muri"}).rules.debt.pay, model::Debt::Pay::kInterval)
      << "the base stays";
}

TEST_F(UserPresetTest, OptionsOfTheBaseAndOfTheFileCanBeGiven) {
  const std::string mine = Write(
      "base = \"elasticflow\"\n[options.slot]\ndefault = 120\n[options.cost]\ndefault = 2\n"
      "[overhead]\nbase = \"2*$cost\"\n");
  EXPECT_EQ(Resolve({.preset = mine}).rules.clock.length, FromSeconds(120));
  const ResolvedPreset given = Resolve({.preset = mine + ":slot=240,cost=5"});
  EXPECT_EQ(given.rules.clock.length, FromSeconds(240));
  EXPECT_EQ(given.overheads.WarmCost(8), FromSeconds(10));
}

TEST_F(UserPresetTest, WithoutABaseAbsentKeysHaveTheirDefaults) {
  const ResolvedPreset preset = Resolve({.preset = Write("")});
  EXPECT_EQ(preset.policy.name, "fifo");
  EXPECT_EQ(preset.placement.name, "consolidated");
  EXPECT_EQ(preset.admission.name, "all");
  EXPECT_EQ(preset.rules.debt.charge, model::Debt::Charge::kNone);
  EXPECT_EQ(preset.rules.preemption.rule, model::Preemption::Rule::kSound);
}

TEST_F(UserPresetTest, IsDescribedWithItsBaseAndItsText) {
  const std::string mine = Write("base = \"tiresias\"\n[policies.other]\npolicy = \"las\"\n");
  const PresetDescription preset = DescribePreset(mine).value();
  EXPECT_EQ(preset.name, "mine");
  EXPECT_EQ(preset.base, "tiresias");
  EXPECT_EQ(preset.summary, "preset 'tiresias' with changes");
  EXPECT_EQ(preset.policies.back().name, "other");
  EXPECT_GT(preset.policies.size(), 10U);
  EXPECT_TRUE(preset.text.starts_with("base"));
  EXPECT_EQ(preset.sha256, io::Sha256OfFile(mine).value());
}

TEST_F(UserPresetTest, ResultsDependOnTheContentNotOnThePath) {
  const std::string text = "base = \"elasticflow\"\n";
  const std::string mine = PresetContent(Write(text)).value();
  EXPECT_EQ(PresetContent(Write(text)).value(), mine);
  EXPECT_NE(PresetContent(Write(text + "# \n")).value(), mine);
  EXPECT_EQ(PresetContent(Write(text) + ":slot=9").value(), mine + ":slot=9");
  EXPECT_EQ(PresetContent("elasticflow:slot=9").value(), "elasticflow:slot=9");
}

TEST_F(UserPresetTest, AWindowGoesWithHandoversThatAreNeverEarly) {
  const Result<Inputs> inputs = ReadInputs({.trace = kSource + "/data/example_trace.csv",
                                            .cluster = kSource + "/data/example_cluster.toml"});
  const std::string mine = Write("base = \"sound\"\n[handover]\nwindow = 600\n");
  const Result<results::RunResult> run = RunScenario(inputs.value(), {.names = {.preset = mine}});
  EXPECT_TRUE(run.ok()) << run.error().message;
}

// A chain of files: lab.toml, on team.toml in a folder above it, on blox.
class PresetOnAFileTest : public UserPresetTest {
 protected:
  void SetUp() override {
    ScratchFolder& folder = folders_.emplace_back();
    std::filesystem::create_directory(folder.path() + "/lab");
    (void)folder.Write("team.toml",
                       "base = \"blox\"\nsummary = \"of the team\"\n[debt]\ncharge = "
                       "\"start\"\n[options.round]\ndefault = 120\n");
    lab_ = folder.Write("lab/mine.toml", "base = \"../team.toml\"\n[debt]\npay = \"at_end\"\n");
  }

  std::string lab_;
};

TEST_F(PresetOnAFileTest, EachFileChangesWhatItsBaseSays) {
  const ResolvedPreset mine = Resolve({.preset = lab_});
  EXPECT_EQ(mine.rules.debt.pay, model::Debt::Pay::kAtEnd);
  EXPECT_EQ(mine.rules.debt.charge, model::Debt::Charge::kStart);
  EXPECT_EQ(mine.rules.clock.length, FromSeconds(120));
  EXPECT_EQ(mine.rules.end.finish, model::EndRule::Finish::kRoundEnd);
  EXPECT_EQ(Resolve({.preset = lab_ + ":round=30"}).rules.clock.length, FromSeconds(30));
  EXPECT_EQ(DescribePreset(lab_).value().base, "../team.toml");
  EXPECT_EQ(DescribePreset(lab_).value().summary, "preset '../team.toml' with changes");
}

TEST_F(PresetOnAFileTest, TheDigestCoversBothFiles) {
  const std::string text = "base = \"base.toml\"\n";
  const auto digest_on = [&](const std::string& base) {
    ScratchFolder& folder = folders_.emplace_back();
    (void)folder.Write("base.toml", base);
    return Resolve({.preset = folder.Write("mine.toml", text)}).file_sha256;
  };
  EXPECT_EQ(digest_on(""), digest_on(""));
  EXPECT_NE(digest_on(""), digest_on("# other\n"));
}

TEST_F(PresetOnAFileTest, AMistakeInTheBaseIsToldAtItsOwnLine) {
  ScratchFolder& folder = folders_.emplace_back();
  const std::string base = folder.Write("base.toml", "\n[clock]\nlenght = 3\n");
  const Result<ResolvedPreset> preset =
      ResolvePreset({.preset = folder.Write("mine.toml", "base = \"base.toml\"\n")});
  ASSERT_FALSE(preset.ok());
  EXPECT_TRUE(preset.error().message.starts_with(base + ":3: unknown [clock] key 'lenght'"))
      << preset.error().message;
}

TEST_F(PresetOnAFileTest, AFileThatIsItsOwnBaseIsRefused) {
  ScratchFolder& folder = folders_.emplace_back();
  const std::string one = folder.Write("one.toml", "base = \"two.toml\"\n");
  const std::string two = folder.Write("two.toml", "\nbase = \"./one.toml\"\n");
  const Result<ResolvedPreset> preset = ResolvePreset({.preset = one});
  ASSERT_FALSE(preset.ok());
  EXPECT_EQ(preset.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(preset.error().message, two + ":2: './one.toml' begins with this file itself (" + one +
                                        ", " + two + "); expected a base that does not");
}

TEST_F(PresetOnAFileTest, ABaseThatIsNotThereOrHasOptionsIsRefused) {
  EXPECT_EQ(ErrorOf("\nbase = \"no.toml\"\n"),
            "mine.toml:2: no file 'no.toml'; expected the path of a preset, relative to this file");
  EXPECT_TRUE(ErrorOf("base = \"team.toml:round=3\"\n")
                  .starts_with("mine.toml:1: unknown preset 'team.toml:round=3'"));
}

// -------------------------------------------------------------------------------------- refused

TEST_F(UserPresetTest, KeysThatAreNotKnownAreRefusedWithTheNearest) {
  EXPECT_EQ(ErrorOf("[clock]\nlenght = 3\n"),
            "mine.toml:2: unknown [clock] key 'lenght'; did you mean 'length'?; known: mode, "
            "length, anchor, lone");
  EXPECT_TRUE(ErrorOf("\n[clokc]\n")
                  .starts_with("mine.toml:2: unknown top-level key 'clokc'; did you mean 'clock'?; "
                               "known: base, name, "));
  EXPECT_TRUE(
      ErrorOf("[policies.a]\npolicy = \"fifo\"\nwalk = {misfi = \"skip\"}\n")
          .starts_with(
              "mine.toml:3: unknown [policies.a.walk] key 'misfi'; did you mean 'misfit'?"));
  EXPECT_TRUE(ErrorOf("[policies.a]\npolicy = \"fifo\"\ndebt = {chrage = \"none\"}\n")
                  .starts_with("mine.toml:3: unknown [policies.a.debt] key 'chrage'; did you mean "
                               "'charge'?"));
  EXPECT_TRUE(ErrorOf("[overhead.models.bert]\nstrat = 3\n")
                  .starts_with("mine.toml:2: unknown [overhead.models.bert] key 'strat'; did you "
                               "mean 'start'?"));
  EXPECT_EQ(ErrorOf("base = \"muir\"\n").substr(0, 58),
            "mine.toml:1: unknown preset 'muir'; did you mean 'muri'?; ");
  EXPECT_EQ(ErrorOf("[options.slot]\ndefault = 3\n[clock]\nlength = \"$slto\"\n"),
            "mine.toml:4: unknown option of the preset 'slto'; did you mean 'slot'?; known: slot");
}

TEST_F(UserPresetTest, WrongTypesAndValuesOutOfBoundsAreRefused) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"clock = 3\n", "1: 'clock' is no table; expected [clock]"},
           {"[clock]\nlength = true\n",
            "2: [clock] length is true; expected seconds from 0 to 1e9"},
           {"[clock]\nlength = [3]\n", "2: [clock] 'length' is a list; expected seconds"},
           {"[clock]\nlength = -1\n", "2: [clock] length is '-1'; expected seconds from 0 to 1e9"},
           {"[clock]\nlength = nan\n",
            "2: [clock] length is 'nan'; expected seconds from 0 to 1e9"},
           {"[clock]\nlength = \"2*x\"\n",
            "2: [clock] length is '2*x'; expected seconds from 0 to 1e9"},
           {"[clock]\nmode = \"round\"\n",
            "2: [clock] mode is 'round'; expected one of every_event, spacing, rounds, arrivals; "
            "did you mean 'rounds'?"},
           {"[clock]\nmode = \"rounds\"\n",
            "1: [clock] mode 'rounds' needs a length; expected [clock] length of a microsecond or "
            "more"},
           {"[end]\nfound_late = true\n",
            "1: [end] found_late leaves ends to decisions that come without them; expected [clock] "
            "mode = \"arrivals\" and [ledger] every_instant"},
           {"[debt]\nin_forecast = 2\n", "2: [debt] in_forecast is '2'; expected true or false"},
           {"[ledger]\nrate_factor = 0\n",
            "2: [ledger] rate_factor is '0'; expected a number from 1e-6 to 1e6"},
           {"[run]\ntrack = \"5\"\n", "2: [run] track is '5'; expected all, or rows FIRST-LAST"},
           {"summary = 3\n", "1: top-level summary is '3'; expected a text"},
           {"[options.x]\nhelp = \"h\"\n", "1: [options.x] has no 'default'; expected one"},
           {"[overhead.by_gpus]\nbert = {x = 3}\n",
            "2: [overhead.by_gpus.bert] has the key 'x'; expected a number of GPUs"},
           {"[options.s]\ndefault = \"h\"\nkind = \"text\"\n[clock]\nlength = \"$s\"\n",
            "5: [clock] length is '$s' ('h'); expected seconds from 0 to 1e9"},
           {"[policies.a]\nwalk = {}\n",
            "1: [policies.a] has no 'policy'; expected a name of the catalogue (`trainyard "
            "policies`), with its options"}}) {
    EXPECT_EQ(ErrorOf(text), "mine.toml:" + message) << text;
  }
  EXPECT_TRUE(ErrorOf("a = = 3\n").starts_with("mine.toml:1: not TOML: "));
}

TEST_F(UserPresetTest, NamesOfComponentsAndTheirOptionsAreChecked) {
  EXPECT_TRUE(ErrorOf("[policies.a]\npolicy = \"tiresais\"\n")
                  .starts_with("mine.toml:2: unknown policy 'tiresais'; did you mean 'tiresias'?"));
  EXPECT_TRUE(
      ErrorOf("[policies.a]\npolicy = \"tiresias:servce=time\"\n")
          .starts_with(
              "mine.toml:2: policy 'tiresias': unknown option 'servce'; did you mean 'service'?"));
  EXPECT_TRUE(ErrorOf("[placements]\nx = \"bddy\"\n")
                  .starts_with("mine.toml:2: unknown placement 'bddy'; did you mean 'buddy'?"));
  EXPECT_TRUE(ErrorOf("base = \"blox\"\n[defaults]\npolicy = \"Lsa\"\n")
                  .starts_with("mine.toml:3: unknown policy 'Lsa'"));
  EXPECT_EQ(ErrorOf("base = \"blox\"\n[defaults]\npolicy = \"Las\"\nadmission = "
                    "\"LoadBasedAccept-1.5x\"\n"),
            "no error");
}

TEST_F(UserPresetTest, AFileThatIsNotThereIsBadInputAndAnUnknownNameWrongUsage) {
  for (const std::string missing : {"no.toml", "./no", "no.toml:slot=3"}) {
    const Result<ResolvedPreset> preset = ResolvePreset({.preset = missing});
    ASSERT_FALSE(preset.ok());
    EXPECT_EQ(preset.error().code, ErrorCode::kBadInput) << missing;
    EXPECT_TRUE(preset.error().message.ends_with(": cannot be read: No such file or directory"));
  }
  const Result<ResolvedPreset> unknown = ResolvePreset({.preset = "no"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  const Result<ResolvedPreset> option = ResolvePreset({.preset = Write("") + ":x=1"});
  ASSERT_FALSE(option.ok());
  EXPECT_EQ(option.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(UserPresetTest, OptionsThatGiveAValueOutOfBoundsAreWrongUsage) {
  const Result<ResolvedPreset> preset = ResolvePreset({.preset = "elasticflow:slot=1e300"});
  ASSERT_FALSE(preset.ok());
  EXPECT_EQ(preset.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(preset.error().message,
            "preset 'elasticflow': [clock] length is '1e300'; expected seconds from 0 to 1e9");
}

TEST(PresetPathTest, EndsInTomlOrHasASlash) {
  EXPECT_EQ(PresetPath("mine.toml:slot=3"), "mine.toml");
  EXPECT_EQ(PresetPath("a:b/mine.toml"), "a:b/mine.toml");
  EXPECT_EQ(PresetPath("a:b/mine.toml:x=y.toml"), "a:b/mine.toml");
  EXPECT_EQ(PresetPath("./rules:slot=3"), "./rules");
  EXPECT_EQ(PresetPath("elasticflow:slot=3"), "");
  EXPECT_EQ(PresetPath("blox:track=a/b"), "");
  EXPECT_EQ(PresetPath("nothing"), "");
  EXPECT_EQ(PresetPath(""), "");
}

// ------------------------------------------------------------------------------- docs/presets.md

// "policies.*.walk" of "### `[policies.NAME.walk]`: ...": parts in capitals are the author's.
std::string TableOf(const std::string& heading) {
  const std::size_t begin = heading.find("`[");
  if (begin == std::string::npos) {
    return "";
  }
  const std::string name = heading.substr(begin + 2, heading.find("]`") - begin - 2);
  std::string table;
  for (const std::string_view part : base::Split(name, ".")) {
    const bool own = part.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos;
    table += (table.empty() ? "" : ".") + (own ? "*" : std::string(part));
  }
  return table;
}

TEST(PresetKeysTest, DocsListThemAllWithTypeDefaultAndBounds) {
  std::vector<std::string> documented;
  std::istringstream page(io::ReadFile(kSource + "/docs/presets.md").value());
  std::string table;
  bool among_keys = false;
  for (std::string line; std::getline(page, line);) {
    among_keys = line.starts_with("## ") ? line == "## Keys" : among_keys;
    table = line.starts_with("### ") ? TableOf(line) : table;
    if (!among_keys || !line.starts_with("| `")) {
      continue;
    }
    const std::vector<std::string_view> cells = base::Split(line, "|");
    ASSERT_EQ(cells.size(), 7U) << line;
    EXPECT_FALSE(base::Trim(cells[5]).empty()) << line;
    std::string row = "[" + table + "]";
    for (std::size_t i = 1; i < 5; ++i) {
      row += " | " + std::string(base::Trim(cells[i]));
    }
    documented.push_back(row);
  }
  std::vector<std::string> known;
  for (const PresetKey& key : PresetKeys()) {
    const std::string name = key.key != "*"                      ? std::string(key.key)
                             : key.table == "overhead.by_gpus.*" ? "GPUS"
                                                                 : "NAME";
    std::string row = "[" + std::string(key.table) + "] | `" + name + "` | ";
    row += std::string(KindName(key.kind)) + " | ";
    row += key.fallback.empty() ? "" : "`" + std::string(key.fallback) + "`";
    known.push_back(row + " | " + BoundsText(key));
  }
  EXPECT_EQ(documented, known);
}

}  // namespace
}  // namespace trainyard::scenario
