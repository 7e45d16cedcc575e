// SPDX-License-Identifier: Apache-2.0
// The rules of the source tree that no compiler checks: who may include whom, what every policy
// needs beside its code, what stays out of the code that decides. One test per rule; a violation
// reads "file:line: what is wrong; what is expected". Paths are relative to the source folder.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string path;  // relative to the source folder
  std::string name;
  std::string extension;
  std::string text;

  [[nodiscard]] bool IsCpp() const { return extension == ".cc" || extension == ".h"; }
  [[nodiscard]] bool IsUnitTest() const { return path.ends_with("_test.cc"); }
};

fs::path Root() { return fs::path(TRAINYARD_SOURCE_DIR); }

std::string ReadText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

File FileAt(const fs::path& path) {
  return {.path = path.lexically_relative(Root()).generic_string(),
          .name = path.filename().string(),
          .extension = path.extension().string(),
          .text = ReadText(path)};
}

// The files below a folder (or the one file), by path. Hidden files are left out. A folder without
// any fails the test: its rules would hold of nothing.
std::vector<File> FilesIn(std::string_view folder) {
  std::vector<File> files;
  const fs::path top = Root() / folder;
  if (fs::is_regular_file(top)) {
    files.push_back(FileAt(top));
  }
  if (fs::is_directory(top)) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      if (entry.is_regular_file() && entry.path().filename().string().front() != '.') {
        files.push_back(FileAt(entry.path()));
      }
    }
  }
  EXPECT_FALSE(files.empty()) << folder
                              << ": there is no file; expected the folder that this test "
                                 "looks at, or its new name in the test";
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

std::vector<File> FilesIn(std::initializer_list<std::string_view> folders) {
  std::vector<File> files;
  for (const std::string_view folder : folders) {
    std::vector<File> more = FilesIn(folder);
    std::move(more.begin(), more.end(), std::back_inserter(files));
  }
  return files;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

void Violation(const File& file, std::size_t line, const std::string& what) {
  ADD_FAILURE() << file.path << ":" << line << ": " << what;
}

// The position behind the literal that begins at `at`; it ends with its line at the latest.
std::size_t EndOfLiteral(const std::string& text, std::size_t at) {
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at) {
    at += text[at] == '\\' ? 1 : 0;
  }
  return std::min(at + 1, text.size());
}

// C++ with comments, strings and characters blanked; line ends stay, so that line numbers do.
std::string CodeOnly(const std::string& text) {
  std::string code = text;
  const auto blank = [&code](std::size_t from, std::size_t to) {
    for (; from < to; ++from) {
      code[from] = code[from] == '\n' ? '\n' : ' ';
    }
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    const bool digit_before = at > 0 && std::isdigit(static_cast<unsigned char>(text[at - 1])) != 0;
    if (text.compare(at, 2, "//") == 0) {
      end = std::min(text.find('\n', at), text.size());
      blank(at, end);
    } else if (text.compare(at, 2, "/*") == 0) {
      end = std::min(text.find("*/", at + 2), text.size() - 2) + 2;
      blank(at, end);
    } else if (text[at] == '"' || (text[at] == '\'' && !digit_before)) {
      end = EndOfLiteral(text, at);
      blank(at, end);
    }
    at = end;
  }
  return code;
}

struct Include {
  std::size_t line = 0;
  std::string header;
  bool quoted = false;
};

std::vector<Include> IncludesOf(const File& file) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> includes;
  const std::vector<std::string> lines = LinesOf(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (std::smatch match; std::regex_search(lines[i], match, kInclude)) {
      includes.push_back({.line = i + 1, .header = match[2], .quoted = match[1] == "\""});
    }
  }
  return includes;
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

constexpr std::string_view kOriginalResults = "originals/results";

// The folder of src/ that has a place of its own in the tree. `path`: relative to src/.
std::string RoomOf(const std::string& path) {
  return path.starts_with(kOriginalResults) ? std::string(kOriginalResults) : FolderOf(path);
}

// Reports each match of `pattern` in the code (not in comments or strings) of the files.
void ForbidInCode(const std::vector<File>& files, const std::regex& pattern,
                  const std::string& expected) {
  for (const File& file : files) {
    const std::vector<std::string> lines = LinesOf(CodeOnly(file.text));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (std::smatch match; std::regex_search(lines[i], match, pattern)) {
        Violation(file, i + 1, "'" + match.str() + "' in the code; expected " + expected);
      }
    }
  }
}

// ---------------------------------------------------------------------------------------- includes

using Folders = std::set<std::string, std::less<>>;

// What each folder of src/ may include besides itself and the public headers, down the tree. The
// components do not know one another, and the engine knows them by their interfaces only.
const std::map<std::string, Folders>& MayInclude() {
  static const Folders kScenario{"base",   "solver",  "io",        "model",  "profile",
                                 "loader", "catalog", "scheduler", "engine", "trace",
                                 "world",  "results", "scenario"};
  static const Folders kLive{"base",   "io",    "identity",   "model",   "profile",
                             "engine", "store", "supervisor", "service", "live"};
  static const Folders kAll = [] {
    Folders all = kScenario;
    all.insert(kLive.begin(), kLive.end());
    all.insert(
        {"originals/results", "requests", "rpc", "daemon", "experiments", "profiler", "launcher"});
    return all;
  }();
  static const std::map<std::string, Folders> kMay{
      {"base", {}},
      {"solver", {"base"}},
      {"io", {"base"}},
      {"cgroup", {"base"}},
      {"launcher", {"base", "cgroup"}},
      {"identity", {"base", "io"}},
      {"model", {"base", "io"}},
      {"profile", {"base", "solver", "io", "model"}},
      {"loader", {"base", "io", "solver", "model", "profile"}},
      {"policies", {"base", "solver", "loader", "model", "profile"}},
      {"placements", {"base", "model", "profile"}},
      {"admissions", {"base", "model", "profile"}},
      {"originals", {"base", "model", "profile", "policies", "placements"}},
      {"catalog", {"base", "policies", "placements", "admissions", "originals"}},
      {"scheduler", {"base", "model", "profile"}},
      {"engine", {"base", "io", "model", "profile", "scheduler"}},
      {"trace", {"base", "io", "model", "profile"}},
      {"world", {"base", "io", "model", "profile", "engine", "catalog"}},
      {"results", {"base", "io", "model", "trace"}},
      {"originals/results", {"base", "io", "trace", "results"}},
      {"scenario", kScenario},
      {"store", {"base", "io"}},
      {"experiments",
       {"base", "io", "loader", "profile", "trace", "world", "results", "scenario", "store"}},
      {"supervisor", {"base", "io", "cgroup", "identity", "launcher", "service"}},
      {"live", kLive},
      {"requests", {"base", "io", "model", "service", "trace", "live"}},
      {"service", {"base", "identity"}},
      {"rpc", {"base", "io", "identity", "service"}},
      {"daemon", kAll},
      {"profiler", {"base", "io", "profile", "loader", "results", "supervisor"}},
      {"cli", kAll}};
  return kMay;
}

void CheckIncludesOf(const File& file, const std::string& folder, const Folders& may) {
  for (const Include& include : IncludesOf(file)) {
    const std::string from = RoomOf(include.header);
    const bool of_tests = from == "support" && file.path.ends_with("_test.cc");
    if (!include.quoted || of_tests || from == "trainyard" || from == folder ||
        may.contains(from)) {
      continue;
    }
    Violation(file, include.line,
              "src/" + folder + " includes \"" + include.header +
                  "\"; expected itself, trainyard/ or a folder below it in the tree");
  }
}

TEST(StructureTest, AFolderThatIsMissingFails) {
  std::vector<File> files;
  EXPECT_NONFATAL_FAILURE(files = FilesIn("src/no-such-folder"), "there is no file");
  EXPECT_NONFATAL_FAILURE(files = FilesIn({"src/base", "include/no-such-folder"}),
                          "include/no-such-folder: there is no file");
}

TEST(StructureTest, EveryRoomOfTheTreeIsThere) {
  for (const auto& [room, below] : MayInclude()) {
    EXPECT_TRUE(fs::is_directory(Root() / "src" / room)) << "src/" << room;
    for (const std::string& other : below) {
      EXPECT_TRUE(fs::is_directory(Root() / "src" / other)) << "src/" << other;
    }
  }
}

TEST(StructureTest, IncludesGoDownTheTree) {
  for (const File& file : FilesIn("src")) {
    if (!file.IsCpp()) {
      continue;
    }
    const std::string folder = RoomOf(file.path.substr(4));
    const auto may = MayInclude().find(folder);
    if (may == MayInclude().end()) {
      Violation(file, 1, "src/" + folder + " has no place in the tree; expected one in this test");
      continue;
    }
    CheckIncludesOf(file, folder, may->second);
  }
}

TEST(StructureTest, PublicHeadersIncludeOnlyOneAnotherAndTheStandardLibrary) {
  static const std::regex kStandard("[a-z_0-9]+");  // no folder, no ending
  for (const File& file : FilesIn("include")) {
    for (const Include& include : IncludesOf(file)) {
      const bool own = include.quoted && FolderOf(include.header) == "trainyard";
      if (!own && (include.quoted || !std::regex_match(include.header, kStandard))) {
        Violation(file, include.line,
                  "includes " + include.header + "; expected trainyard/ or the standard library");
      }
    }
  }
}

TEST(StructureTest, APluginNeedsOnlyPublicHeaders) {
  for (const File& file : FilesIn("examples/plugin-policy")) {
    for (const Include& include : IncludesOf(file)) {
      if (include.quoted && FolderOf(include.header) != "trainyard") {
        Violation(file, include.line, "includes \"" + include.header + "\"; expected trainyard/");
      }
    }
  }
}

TEST(StructureTest, HeavyHeadersStayWhereTheyBelong) {
  struct Rule {
    std::string prefix;
    std::regex where;
    std::string expected;
  };
  const std::vector<Rule> rules{
      {"nlohmann/", std::regex("src/io/json.h|(bench|tests/(golden|cli))/.*\\.cc"),
       "src/io/json.h and .cc files of bench, tests/golden and tests/cli"},
      {"io/json.h",
       std::regex("(src/(results|originals/results|cli|experiments|profiler)/.*|src/io/json|"
                  "src/(daemon|trace/formats|requests)/.*)\\.cc|"
                  "src/results/write/json_value.h"),
       "src/results/write/json_value.h, and .cc files of src/results, src/originals/results, "
       "src/cli, src/requests, src/experiments, src/profiler, src/daemon and "
       "src/trace/formats"},
      {"CLI/", std::regex("(src/cli|tests/(golden|faults|fuzz))/.*"),
       "src/cli, tests/golden, tests/faults and tests/fuzz"},
      {"toml++/", std::regex("src/io/toml.cc"), "src/io/toml.cc"},
      {"grpcpp/", std::regex("src/rpc/.*\\.cc"), ".cc files of src/rpc"},
      {"coin/", std::regex("src/solver/milp\\.cc"), "src/solver/milp.cc"},
      {"lemon/", std::regex("src/solver/.*\\.cc"), ".cc files of src/solver"},
      {"pugixml.hpp", std::regex("src/trace/clusters/cluster_xml.cc"),
       "src/trace/clusters/cluster_xml.cc"},
      {"sqlite3.h", std::regex("src/store/(sqlite\\.h|.*\\.cc)"),
       ".cc files of src/store and src/store/sqlite.h"}};
  for (const File& file : FilesIn({"src", "include", "tests", "bench"})) {
    for (const Include& include : IncludesOf(file)) {
      for (const Rule& rule : rules) {
        if (include.header.starts_with(rule.prefix) && !std::regex_match(file.path, rule.where)) {
          Violation(file, include.line,
                    "includes <" + include.header + ">; expected it only in " + rule.expected);
        }
      }
    }
  }
}

// -------------------------------------------------------------------------------------- catalogues

// One kind of component: a file of src/FOLDER defines ComponentEntry XEntry(), and HEADER has a
// line X(X).
struct Kind {
  std::string folder;
  std::string header;
};

struct Component {
  std::string kind;      // kPolicy, kPlacement ...
  std::string name;      // as users write it
  std::string function;  // of its catalogue entry
  File file;
  std::size_t line = 0;
};

bool SharesItsPart(const File& file) {  // foo.cc with foo.h: a part that others share
  return fs::exists((Root() / file.path).replace_extension(".h"));
}

std::vector<Component> ComponentsOf(const Kind& kind) {
  const std::regex entry(
      R"(ComponentEntry (\w+)Entry\(\) \{\s*return \{ComponentKind::(\w+),\s*"([^"]+)\")");
  std::vector<Component> components;
  for (const File& file : FilesIn("src/" + kind.folder)) {
    if (file.extension != ".cc" || file.IsUnitTest() ||
        RoomOf(file.path.substr(4)) != kind.folder) {
      continue;
    }
    const std::size_t before = components.size();
    for (std::sregex_iterator at(file.text.begin(), file.text.end(), entry), end; at != end; ++at) {
      const auto line = std::count(file.text.begin(), file.text.begin() + at->position(), '\n') + 1;
      components.push_back({.kind = (*at)[2],
                            .name = (*at)[3],
                            .function = (*at)[1],
                            .file = file,
                            .line = static_cast<std::size_t>(line)});
    }
    if (components.size() == before && !SharesItsPart(file)) {
      Violation(file, 1, "defines no ComponentEntry; expected one, or a header of its own");
    }
  }
  EXPECT_FALSE(components.empty()) << "src/" << kind.folder;
  return components;
}

void CheckCatalogue(const Kind& kind, const Component& component) {
  const std::string header = "src/" + kind.folder + "/" + kind.header;
  if (ReadText(Root() / header).find("X(" + component.function + ")") == std::string::npos) {
    Violation(component.file, component.line,
              header + " has no line X(" + component.function + ")");
  }
  std::string stem = component.name;
  std::replace(stem.begin(), stem.end(), '-', '_');
  // Variants of one component may share a file (muri-l and muri-s), and small ones that of the
  // folder's list.
  if (!stem.starts_with(fs::path(component.file.name).stem().string()) &&
      !SharesItsPart(component.file)) {
    Violation(component.file, component.line,
              "defines '" + component.name + "'; expected it in " + stem + ".cc");
  }
}

// Some test names it: "las" or "las:quantum=0".
void CheckTested(const Kind& kind, const Component& component) {
  const auto names_it = [&component](const File& file) {
    return file.text.find("\"" + component.name + "\"") != std::string::npos ||
           file.text.find("\"" + component.name + ":") != std::string::npos;
  };
  std::vector<File> tests = FilesIn("tests");
  for (File& file : FilesIn("src/" + kind.folder)) {
    if (file.IsUnitTest()) {
      tests.push_back(std::move(file));
    }
  }
  if (std::none_of(tests.begin(), tests.end(), names_it)) {
    Violation(
        component.file, component.line,
        "no test names \"" + component.name + "\"; expected one in tests or src/" + kind.folder);
  }
}

// The page has a heading with the name: "## las".
void CheckHeading(const Component& component, const std::string& page) {
  const std::vector<std::string> lines = LinesOf(ReadText(Root() / page));
  const bool found = std::any_of(lines.begin(), lines.end(), [&component](const std::string& line) {
    return line == "## " + component.name || line == "## `" + component.name + "`";
  });
  if (!found) {
    Violation(component.file, component.line,
              page + " has no heading '## " + component.name + "'; expected one");
  }
}

TEST(StructureTest, EveryPolicyIsInTheCatalogueDocumentedAndTested) {
  const Kind kind{"policies", "policies.h"};
  std::set<std::string> pages;
  for (const Component& component : ComponentsOf(kind)) {
    CheckCatalogue(kind, component);
    CheckTested(kind, component);
    if (component.kind != "kPolicy") {  // a grouping or a tuning
      CheckHeading(component, "docs/placements.md");
      continue;
    }
    const std::string page = "docs/policies/" + component.name + ".md";
    pages.insert(page);
    if (!fs::exists(Root() / page)) {
      Violation(component.file, component.line, page + " is missing");
    }
  }
  for (const File& preset : FilesIn("presets")) {  // a published system may have a page of its own
    pages.insert("docs/policies/" + fs::path(preset.path).stem().string() + ".md");
  }
  for (const File& file : FilesIn("docs/policies")) {
    if (!pages.contains(file.path)) {
      Violation(file, 1, "no policy or preset has this name");
    }
  }
}

TEST(StructureTest, EveryPlacementIsInTheCatalogueDocumentedAndTested) {
  const Kind kind{"placements", "placements.h"};
  for (const Component& component : ComponentsOf(kind)) {
    CheckCatalogue(kind, component);
    CheckTested(kind, component);
    CheckHeading(component, "docs/placements.md");
  }
}

TEST(StructureTest, EveryAdmissionIsInTheCatalogueDocumentedAndTested) {
  const Kind kind{"admissions", "admissions.h"};
  for (const Component& component : ComponentsOf(kind)) {
    CheckCatalogue(kind, component);
    CheckTested(kind, component);
    CheckHeading(component, "docs/admissions.md");
  }
}

TEST(StructureTest, EveryOriginalIsInTheCatalogueDocumentedAndTested) {
  const Kind kind{"originals", "originals.h"};
  for (const Component& component : ComponentsOf(kind)) {
    CheckCatalogue(kind, component);
    CheckTested(kind, component);
    CheckHeading(component, "docs/originals.md");
  }
}

// --------------------------------------------------------------------------------------- contents

TEST(StructureTest, WhatCannotBeRepeatedStaysOutOfTheCodeThatDecides) {
  static const std::regex kForbidden(
      R"(\bs?rand\(|\bsrand\b|\brandom_device\b|\b\w*(system|steady|high_resolution)_clock\b)"
      R"(|\bgetenv\b|\bunordered_(multi)?(map|set)\b|\bstd::j?thread\b|\btime\()");
  std::vector<File> files = FilesIn({"src/policies", "src/placements", "src/admissions",
                                     "src/originals", "src/scheduler", "src/engine", "src/model"});
  std::erase_if(files, [](const File& file) { return !file.IsCpp() || file.IsUnitTest(); });
  ForbidInCode(files, kForbidden,
               "time and randomness as arguments, ordered containers, one thread");
}

TEST(StructureTest, PoliciesDoNotAskUnderWhichRulesOrWhereTheyRun) {
  static const std::regex kForbidden("preset|simulat", std::regex::icase);
  std::vector<File> files = FilesIn("src/policies");
  std::erase_if(files, [](const File& file) { return !file.IsCpp() || file.IsUnitTest(); });
  ForbidInCode(files, kForbidden, "an option that says what to do");
}

// The published rules, each with the place in src/engine that its comment names: "Muri: ledger."
// Fields in a row share a comment.
std::map<std::string, std::string> PublishedRulesAndPlaces() {
  const std::string text = FileAt(Root() / "src/model/rules.h").text;
  const std::size_t begin = text.find("struct PublishedRules {");
  std::map<std::string, std::string> places;
  std::string comment;
  bool field_before = true;
  for (const std::string& line : LinesOf(text.substr(begin, text.find("\n};", begin) - begin))) {
    const std::regex field(R"(  [\w:]+ (\w+)( = [^;]+|\{\w*\});)");
    std::smatch found;
    if (line.starts_with("  //")) {
      comment = (field_before ? "" : comment) + line.substr(line.find("//") + 2);
      field_before = false;
    } else if (std::regex_match(line, found, field)) {
      const std::string name = found[1];
      const bool has_place = std::regex_search(comment, found, std::regex(R"(: ([\w/]+)\.$)"));
      places[name] = has_place ? found[1].str() : "";
      field_before = true;
    }
  }
  return places;
}

TEST(StructureTest, EveryPublishedRuleIsReadInTheOnePlaceThatItsCommentNames) {
  std::vector<std::pair<std::string, std::string>> codes;  // path without its extension, code
  for (const File& file : FilesIn("src")) {
    if (file.IsCpp() && !file.IsUnitTest() && !file.path.starts_with("src/scenario/preset")) {
      codes.emplace_back(fs::path(file.path).replace_extension().string(), CodeOnly(file.text));
    }
  }
  const std::map<std::string, std::string> rules = PublishedRulesAndPlaces();
  EXPECT_GE(rules.size(), 5U);
  for (const auto& [rule, place] : rules) {
    const std::regex read("published_?\\." + rule + "\\b");
    std::set<std::string> readers;
    for (const auto& [path, code] : codes) {
      if (std::regex_search(code, read)) {
        readers.insert(path);
      }
    }
    EXPECT_EQ(readers, std::set{"src/engine/" + place}) << rule;
  }
}

TEST(StructureTest, EveryFileBeginsWithItsLicence) {
  static const std::set<std::string> kWithoutComments{".csv", ".db", ".gz", ".json", ".md", ".svg"};
  for (const File& file : FilesIn({"src", "include", "tests", "bench", "examples", "presets",
                                   "cmake", "scripts", "web/src"})) {
    const bool is_input = file.path.starts_with("tests/fuzz/corpus/");
    if (kWithoutComments.contains(file.extension) || is_input) {
      continue;
    }
    const std::vector<std::string> lines = LinesOf(file.text);
    const auto first_two = lines.begin() + std::min<std::ptrdiff_t>(2, std::ssize(lines));
    const bool found = std::any_of(lines.begin(), first_two, [](const std::string& line) {
      return line.find("SPDX-License-Identifier: Apache-2.0") != std::string::npos;
    });
    if (!found) {
      Violation(file, 1, "no licence; expected SPDX-License-Identifier in the first two lines");
    }
  }
}

TEST(StructureTest, NoFileHasMoreThan800Lines) {
  constexpr std::size_t kMost = 800;
  for (const File& file : FilesIn({"src", "include", "bench", "examples"})) {
    const std::size_t lines = LinesOf(file.text).size();
    if (file.IsCpp() && !file.path.ends_with("_test.cc") && lines > kMost) {
      Violation(file, kMost,
                std::to_string(lines) + " lines; expected at most 800, in files by subject");
    }
  }
}

TEST(StructureTest, TheEnginesOwnFileIsShort) {
  constexpr std::size_t kMost = 500;
  for (const File& file : FilesIn({"src"})) {
    const std::size_t lines = LinesOf(file.text).size();
    if (file.path == "src/engine/engine.cc" && lines > kMost) {
      Violation(file, kMost, std::to_string(lines) + " lines; expected at most 500, in parts");
    }
  }
}

// What a component has to implement.
TEST(StructureTest, ThePublicHeadersHaveAtMost30VirtualMethods) {
  constexpr std::size_t kMost = 30;
  std::size_t count = 0;
  for (const File& file : FilesIn({"include"})) {
    const std::vector<std::string> lines = LinesOf(file.text);
    count += static_cast<std::size_t>(
        std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.find("virtual ") != std::string::npos &&
                 line.find("virtual ~") == std::string::npos &&
                 line.find("// ") == std::string::npos;
        }));
  }
  EXPECT_LE(count, kMost) << "methods; expected fewer hooks, or a trait";
  EXPECT_GT(count, kMost / 2) << "has the form of the headers changed?";
}

// State that a released version has written is gone on with for ever.
TEST(StructureTest, EveryReleaseHasAStateFolderThatIsTried) {
  const fs::path states = fs::path(TRAINYARD_SOURCE_DIR) / "tests/live/states";
  const std::string tests = ReadText(fs::path(TRAINYARD_SOURCE_DIR) / "tests/live/states_test.cc");
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(states)) {
    if (entry.is_directory()) {
      names.push_back(entry.path().filename().string());
      EXPECT_NE(tests.find('"' + names.back() + '"'), std::string::npos)
          << "no test goes on with tests/live/states/" << names.back();
    }
  }
  const std::string changelog = ReadText(fs::path(TRAINYARD_SOURCE_DIR) / "CHANGELOG.md");
  const std::regex heading("\n## \\[([0-9.]+)\\] - ");
  int releases = 0;
  const std::sregex_iterator end;
  for (std::sregex_iterator at(changelog.begin(), changelog.end(), heading); at != end; ++at) {
    const std::string version = (*at)[1];
    ++releases;
    EXPECT_TRUE(
        std::any_of(names.begin(), names.end(),
                    [&version](const std::string& name) { return name.starts_with(version); }))
        << version << " has no folder in tests/live/states; expected one that it has written "
        << "(tests/live/states/write.sh)";
  }
  EXPECT_GE(releases, 3);
}

TEST(StructureTest, NoFolderHasMoreThan30Files) {
  std::map<std::string, int> files;
  for (const File& file : FilesIn({"src", "include"})) {
    if (file.IsCpp() && !file.IsUnitTest()) {
      ++files[fs::path(file.path).parent_path().generic_string()];
    }
  }
  for (const auto& [folder, count] : files) {
    EXPECT_LE(count, 30) << folder << " is a room with too much in it; expected folders by subject";
  }
}

// What implements a public header is in its namespace.
TEST(StructureTest, EveryFolderIsANamespace) {
  static const std::set<std::string> kOfPublicHeaders{
      "src/base/options.cc", "src/model/free_gpus.cc", "src/base/state.cc", "src/model/cluster.cc"};
  for (const File& file : FilesIn("src")) {
    const std::string expected = "namespace trainyard::" + FolderOf(file.path.substr(4)) + " {";
    if (file.IsCpp() && !kOfPublicHeaders.contains(file.path) && file.name != "main.cc" &&
        file.text.find("namespace ") != std::string::npos &&
        file.text.find(expected) == std::string::npos) {
      Violation(file, 1, "expected '" + expected + "'");
    }
  }
}

// The private methods that the class declares whose body begins at `at`, which is moved behind it.
int PrivateMethods(const std::string& code, std::size_t& at, bool is_private) {
  static const std::regex kAccess(R"(^(public|protected|private):)");
  static const std::regex kMethod(R"([\w>&*\]]\s+[&*]?\w+$)");
  int methods = 0;
  std::string statement;
  for (int depth = 1; at < code.size() && depth > 0; ++at) {
    const char c = code[at];
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth != 1 || c == ';' || c == '}') {
      statement.clear();
      continue;
    }
    if (std::smatch match; c == ':' && std::regex_search(statement += c, match, kAccess)) {
      is_private = match[1] == "private";
      statement.clear();
      continue;
    }
    const bool first = statement.find('(') == std::string::npos;
    if (c == '(' && is_private && first && statement.find('=') == std::string::npos &&
        std::regex_search(statement, kMethod)) {
      ++methods;
    }
    if (!statement.empty() || std::isspace(static_cast<unsigned char>(c)) == 0) {
      statement += c;
    }
  }
  return methods;
}

TEST(StructureTest, NoClassHasMoreThan30PrivateMethods) {
  static const std::regex kClass(R"(\b(class|struct)\s+(\w+)[^;{}()]*\{)");
  int most = 0;
  for (const File& file : FilesIn({"src", "include"})) {
    if (!file.IsCpp() || file.path.ends_with("_test.cc")) {
      continue;
    }
    const std::string code = CodeOnly(file.text);
    std::smatch match;
    for (auto from = code.begin(); std::regex_search(from, code.end(), match, kClass);
         from = match[0].second) {
      auto at = static_cast<std::size_t>(match[0].second - code.begin());
      const int methods = PrivateMethods(code, at, match[1] == "class");
      most = std::max(most, methods);
      if (methods > 30) {
        const auto line = std::count(code.begin(), match[0].first, '\n') + 1;
        Violation(file, static_cast<std::size_t>(line),
                  match[2].str() + " has " + std::to_string(methods) +
                      " private methods; expected at most 30, in parts with state of their own");
      }
    }
  }
  EXPECT_GT(most, 20);  // they are seen
}

TEST(StructureTest, NoLineOfCodeHasMoreThan100Columns) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  for (const File& file : FilesIn({"src", "include", "tests", "bench", "examples"})) {
    if (!file.IsCpp()) {
      continue;
    }
    const std::vector<std::string> lines = LinesOf(file.text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto columns =
          std::ssize(lines[i]) - std::count_if(lines[i].begin(), lines[i].end(), continues);
      if (columns > 100) {
        Violation(file, i + 1, std::to_string(columns) + " columns; expected at most 100");
      }
    }
  }
}

TEST(StructureTest, NoFileNamesAPathOfOneMachine) {
  static const std::regex kAbsolute(R"((^|[^\w.~-])/(work|home|root|Users)/)");
  for (const File& file : FilesIn({"src", "docs", "presets", "examples", "README.md"})) {
    const std::vector<std::string> lines = LinesOf(file.text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (std::smatch match; std::regex_search(lines[i], match, kAbsolute)) {
        Violation(file, i + 1, "absolute path '" + match.str() + "'; expected a relative one");
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
