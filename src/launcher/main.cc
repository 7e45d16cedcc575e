// SPDX-License-Identifier: Apache-2.0
// trainyard-launcher: the only part of a node that has root's rights. It belongs to root and is
// executable, setuid, for the agent's group alone. What an agent can ask of it, and all it can ask:
//
//   start JOB-ATTEMPT MEMORY_MIB MILLI_CPUS   a signed credential on stdin; becomes the supervisor
//   limit JOB-ATTEMPT MEMORY_MIB MILLI_CPUS   other limits of a started attempt
//   end JOB-ATTEMPT                           kills all processes of the attempt
//   log JOB-ATTEMPT RANK                      hands over the open log, through the socket on stdin
//   clear JOB-ATTEMPT                         as its user, removes what an ended attempt has left
//
// Who runs as whom is the controller's decision, by its signature; the agent cannot make any.
// docs/security.md says what each check is for.
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/close_range.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "cgroup/group.h"
#include "launcher/credential.h"

namespace trainyard::launcher {
namespace {

constexpr const char* kConfig = TRAINYARD_LAUNCHER_CONFIG;

// /etc/trainyard/launcher.conf: lines "NAME VALUE". docs/security.md says what they mean.
struct Config {
  std::map<std::string, std::string> texts{
      {"agent", "trainyard"},
      {"node", ""},
      {"state", "/var/lib/trainyard/agent"},
      {"program", "/usr/bin/trainyard"},
      {"key", "/etc/trainyard/controller.pub"},
      {"used", "/var/lib/trainyard/launcher"},
      {"log", "/var/log/trainyard-launcher.log"},
      {"group", "trainyard"},
      {"devices", "/dev/nvidia"},
      {"min-uid", "1000"},
      {"processes", "32768"},
  };
  std::string state;
  std::string program;
  uid_t agent_uid = 0;
  gid_t agent_gid = 0;
};

std::string call = "(no call)";  // NOLINT: for the log, by whatever function
std::string log_path;            // NOLINT

// What could break a line, or a terminal, is replaced.
std::string Printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

void Log(const std::string& what) {
  const std::string line =
      Printable(fmt::format("{} uid {}: {}: {}", base::UtcNow(), getuid(), call, what)) + "\n";
  constexpr int kAppend = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int log = log_path.empty() ? -1 : open(log_path.c_str(), kAppend, S_IRUSR | S_IWUSR);
  if (log >= 0) {
    [[maybe_unused]] const ssize_t written = write(log, line.data(), line.size());
    close(log);
  }
}

[[noreturn]] void Refuse(const std::string& why, int status = 1) {
  Log("refused: " + why);
  fmt::print(stderr, "trainyard-launcher: {}\n", Printable(call + ": refused: " + why));
  _exit(status);
}

void Require(bool fine, const std::string& why) {
  if (!fine) {
    Refuse(why);
  }
}

void RequireUser(bool fine, const std::string& why) {
  if (!fine) {
    Refuse(why, kRefusesUser);
  }
}

// The same of a call to the kernel, which says why.
void RequireCall(bool fine, const std::string& what) {
  if (!fine) {
    Refuse(what + ": " + std::generic_category().message(errno));
  }
}

void Require(const Status& status) {
  if (!status.ok()) {
    Refuse(status.error().message);
  }
}

// ------------------------------------------------------------------- what others may have prepared

// Nothing of the caller's is of any effect here: environment, descriptors, limits, signals.
void LeaveCaller() {
  clearenv();
  close_range(STDERR_FILENO + 1, ~0U, 0);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) {
      _exit(1);
    }
  }
  umask(S_IWGRP | S_IWOTH);  // control groups are for their processes to read
  const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
  for (const auto limit : {RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS, RLIMIT_DATA}) {
    setrlimit(limit, &any);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < NSIG; ++number) {
    signal(number, SIG_DFL);
  }
}

// Only root can have written it, or can replace it: all above it are root's, too.
void CheckTrusted(const std::string& path) {
  for (std::size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end + 1);
    struct stat status {};
    const std::string part = path.substr(0, end);
    RequireCall(lstat(part.c_str(), &status) == 0, part);
    Require(!S_ISLNK(status.st_mode) && status.st_uid == 0 &&
                (status.st_mode & (S_IWGRP | S_IWOTH)) == 0,
            part +
                ": is not root's alone to write; expected owner root, no link, and no right to "
                "write for group and others");
  }
}

std::string ReadTrusted(const std::string& path) {
  CheckTrusted(path);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  std::string text(1 << 16, '\0');
  const ssize_t got = read(file, text.data(), text.size());
  RequireCall(got >= 0, path);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

template <typename Number>
Number NumberFrom(const std::string& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  Require(error == std::errc{} && end == text.data() + text.size(), "'" + text + "' is no number");
  return number;
}

Config ReadConfig() {
  Config config;
  std::istringstream lines(ReadTrusted(kConfig));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name.empty() || name.front() == '#') {
      continue;
    }
    const auto known = config.texts.find(name);
    Require(known != config.texts.end() && static_cast<bool>(words >> known->second),
            fmt::format("{}: '{}' is no setting with a value", kConfig, name));
  }
  log_path = config.texts["log"];
  config.state = config.texts["state"];
  config.program = config.texts["program"];
  const passwd* const agent = getpwnam(config.texts["agent"].c_str());
  Require(agent != nullptr && agent->pw_uid != 0 && agent->pw_gid != 0,
          fmt::format("{}: agent '{}' is no user, or root", kConfig, config.texts["agent"]));
  config.agent_uid = agent->pw_uid;
  config.agent_gid = agent->pw_gid;
  return config;
}

// ---------------------------------------------------------------------------------- the credential

bool IsSigned(const std::string& pem, const SignedCredential& read) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PUBKEY(text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const auto bytes = [](const std::string& from) {
    return reinterpret_cast<const unsigned char*>(from.data());
  };
  return key != nullptr && EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_ED25519 &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes(read.signature), read.signature.size(),
                          bytes(read.text), read.text.size()) == 1;
}

Credential TakeCredential(const Config& config, const std::string& attempt) {
  std::string bytes(kMaxCredentialBytes + 1, '\0');
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < bytes.size(); size += static_cast<std::size_t>(got)) {
    got = std::max<ssize_t>(0, read(STDIN_FILENO, bytes.data() + size, bytes.size() - size));
  }
  bytes.resize(size);
  const Result<SignedCredential> read = ReadCredential(bytes);
  Require(read.ok(), "no credential: " + (read.ok() ? "" : read.error().message));
  Require(IsSigned(ReadTrusted(config.texts.at("key")), read.value()),
          "the signature is not that of this cluster's controller");
  const Credential& credential = read.value().credential;
  Require(fmt::format("{}-{}", credential.job, credential.attempt) == attempt,
          fmt::format("the credential is for {}-{}", credential.job, credential.attempt));
  Require(credential.node == config.texts.at("node"),
          "the credential is for node " + credential.node + ", not " + config.texts.at("node"));
  const std::int64_t left = credential.expires - time(nullptr);
  Require(left > 0, fmt::format("the credential has expired {} s ago", -left));
  Require(left <= 2 * kCredentialSeconds,
          "the credential is valid for too long; expected clocks that agree");
  return credential;
}

// Root's folder says which attempts were started here, as whom, and the highest epoch of any.
void UseOnce(const Config& config, const std::string& attempt, const Credential& credential) {
  const std::string& used = config.texts.at("used");
  CheckTrusted(used);
  const int folder = open(used.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  RequireCall(folder >= 0 && flock(folder, LOCK_EX) == 0, used);
  const int file = openat(folder, "epoch", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  std::array<char, 32> text{};
  RequireCall(file >= 0 && read(file, text.data(), text.size() - 1) >= 0, used + "/epoch");
  const std::uint64_t highest = std::strtoull(text.data(), nullptr, 10);
  Require(credential.epoch >= highest,
          fmt::format("the credential is of epoch {}, and a controller of epoch {} has been here",
                      credential.epoch, highest));
  const int once = openat(folder, attempt.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  Require(once >= 0 || errno != EEXIST, "the credential has been used");
  RequireCall(once >= 0, attempt);
  const std::string uid = std::to_string(credential.uid);
  const std::string epoch = fmt::format("{:020}\n", credential.epoch);
  RequireCall(pwrite(file, epoch.data(), epoch.size(), 0) == static_cast<ssize_t>(epoch.size()) &&
                  write(once, uid.data(), uid.size()) == static_cast<ssize_t>(uid.size()) &&
                  fsync(file) == 0 && fsync(once) == 0 && fsync(folder) == 0,
              used);
}  // the descriptors are closed with the program's image

// --------------------------------------------------------------------------------------- its user

struct User {
  std::string name;
  std::string home;
  std::string shell;
  uid_t uid = 0;
  gid_t gid = 0;
};

User Checked(const Config& config, const passwd* found, const std::string& what) {
  RequireUser(found != nullptr, fmt::format("{} is not known on this node", what));
  User user{found->pw_name, found->pw_dir, found->pw_shell, found->pw_uid, found->pw_gid};
  RequireUser(user.uid != 0 && user.gid != 0, what + " is root, or of root's group");
  RequireUser(user.uid >= NumberFrom<uid_t>(config.texts.at("min-uid")) && user.uid != 65534 &&
                  user.uid != config.agent_uid,
              fmt::format("{} (uid {}) is a user of the system's, not a person", what, user.uid));
  std::array<gid_t, 1024> groups{};
  int count = groups.size();
  Require(getgrouplist(user.name.c_str(), user.gid, groups.data(), &count) >= 0,
          what + " is in too many groups");
  const auto end = groups.begin() + count;
  Require(std::find(groups.begin(), end, config.agent_gid) == end &&
              std::find(groups.begin(), end, 0U) == end,
          what + " is in the agent's group, or in root's");
  return user;
}

// For good: nothing can win back what is given up.
void Become(const User& user, int folder) {
  RequireCall(initgroups(user.name.c_str(), user.gid) == 0 &&
                  setresgid(user.gid, user.gid, user.gid) == 0 &&
                  setresuid(user.uid, user.uid, user.uid) == 0 &&
                  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0,
              "cannot become " + user.name);
  Require(setuid(0) != 0 && setgid(0) != 0 && getuid() == user.uid && geteuid() == user.uid &&
              getegid() == user.gid,
          "root's rights could be won back");
  clearenv();
  setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
  setenv("HOME", user.home.c_str(), 1);
  setenv("USER", user.name.c_str(), 1);
  setenv("LOGNAME", user.name.c_str(), 1);
  setenv("SHELL", user.shell.c_str(), 1);
  RequireCall(fchdir(folder) == 0, "folder");
}

[[noreturn]] void Execute(const Config& config, std::vector<std::string> words) {
  words.insert(words.begin(), {config.program, "supervise"});
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  execv(config.program.c_str(), pointers.data());
  Refuse(config.program + " cannot be executed");
}

// ----------------------------------------------------------------------------------------- folders

struct Opened {
  int fd = -1;
  struct stat status {};
};

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// A folder or file, through no link. Who owns it is looked at before anything is done to it.
Opened Open(int above, const std::string& name, int flags) {
  Opened opened{.fd = openat(above, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  RequireCall(opened.fd >= 0 && fstat(opened.fd, &opened.status) == 0, name);
  return opened;
}

// The agent may have a link for its checkpoints alone, and cannot put another folder in place of
// its state.
int OpenState(const Config& config, const std::string& part) {
  CheckTrusted(config.state.substr(0, config.state.rfind('/')));
  const Opened state = Open(AT_FDCWD, config.state, kFolder);
  const Opened opened = part == "checkpoints" ? Opened{openat(state.fd, part.c_str(), kFolder)}
                                              : Open(state.fd, part, kFolder);
  RequireCall(opened.fd >= 0, part);
  Require(state.status.st_uid == config.agent_uid &&
              (part == "checkpoints" || opened.status.st_uid == config.agent_uid),
          config.state + "/" + part + " is not the agent's");
  return opened.fd;
}

// Hands over what is the agent's, and nothing else: a file that somebody else owns, or that has
// another name somewhere, is not given away.
void HandOver(const Config& config, const Opened& opened, const User& user, mode_t mode,
              const std::string& name) {
  const bool folder = S_ISDIR(opened.status.st_mode);
  if (folder && opened.status.st_uid == user.uid && mode == S_IRWXU) {
    return;  // the checkpoints of an earlier attempt
  }
  Require(opened.status.st_uid == config.agent_uid,
          fmt::format("{} belongs to uid {}; expected the agent's", name, opened.status.st_uid));
  Require(folder || (S_ISREG(opened.status.st_mode) && opened.status.st_nlink == 1),
          name + " is no plain file of its own");
  RequireCall(fchown(opened.fd, user.uid, user.gid) == 0 && fchmod(opened.fd, mode) == 0, name);
}

// Returns the attempt's own.
int HandOverFolders(const Config& config, const std::string& attempt, const User& user) {
  const std::string job = attempt.substr(0, attempt.find('-'));
  HandOver(config, Open(OpenState(config, "logs"), attempt, kFolder), user, S_IRWXU,
           "logs/" + attempt);
  HandOver(config, Open(OpenState(config, "checkpoints"), job, kFolder), user, S_IRWXU,
           "checkpoints/" + job);
  User with_agent = user;  // who reads reports
  with_agent.gid = config.agent_gid;
  const Opened folder = Open(OpenState(config, "attempts"), attempt, kFolder);
  for (const char* const file : {"start", "lock", "spare"}) {
    HandOver(config, Open(folder.fd, file, O_RDONLY), with_agent, 0660, file);
  }
  HandOver(config, folder, with_agent, S_ISGID | S_IRWXU | S_IRWXG, "attempts/" + attempt);
  return folder.fd;
}

// ------------------------------------------------------------------------------------------ calls

cgroup::Group GroupOf(const Config& config, const std::string& attempt) {
  Result<cgroup::Hierarchies> found = cgroup::Hierarchies::OfThisMachine();
  Require(found.ok(), found.ok() ? "" : found.error().message);
  return {std::move(found).value(), config.texts.at("group") + "/" + attempt};
}

// The nodes of the GPUs that the attempt has not been given.
std::vector<cgroup::Device> Forbidden(const Config& config, const std::vector<int>& granted) {
  std::vector<cgroup::Device> forbidden;
  for (int gpu = 0; gpu < 64; ++gpu) {  // as many as a node may have
    const Result<cgroup::Device> device =
        cgroup::DeviceAt(config.texts.at("devices") + std::to_string(gpu));
    if (device.ok() && std::find(granted.begin(), granted.end(), gpu) == granted.end()) {
      forbidden.push_back(device.value());
    }
  }
  return forbidden;
}

cgroup::Limits LimitsFrom(const Config& config, const std::vector<std::string>& words) {
  Require(words.size() == 4, "expected MEMORY_MIB and MILLI_CPUS");
  return {.memory_mib = NumberFrom<std::uint32_t>(words[2]),
          .milli_cpus = NumberFrom<std::uint32_t>(words[3]),
          .cpus = {},
          .processes = NumberFrom<std::int64_t>(config.texts.at("processes"))};
}

[[noreturn]] void Start(const Config& config, const std::vector<std::string>& words) {
  const std::string& attempt = words[1];
  const cgroup::Limits limits = LimitsFrom(config, words);
  const Credential credential = TakeCredential(config, attempt);
  const User user = Checked(config, getpwnam(credential.user.c_str()), credential.user);
  Require(user.uid == credential.uid, fmt::format("{} has uid {} here, {} in the credential",
                                                  credential.user, user.uid, credential.uid));
  CheckTrusted(config.program);
  UseOnce(config, attempt, credential);
  const int folder = HandOverFolders(config, attempt, user);
  const cgroup::Group group = GroupOf(config, attempt);
  Require(group.Make(limits));
  Require(group.Forbid(Forbidden(config, credential.gpus)));
  Require(group.Join(getpid()));
  Log(fmt::format("started as {} (uid {})", user.name, user.uid));
  Become(user, folder);
  Execute(config, {config.state + "/attempts/" + attempt, "--launch", credential.launch, "--key",
                   config.texts.at("key")});
}

// Becomes the program, in a folder of an attempt that was started here, as its user.
void RunAsOwner(const Config& config, const std::string& part, const std::string& attempt,
                std::vector<std::string> words) {
  const Opened folder = Open(OpenState(config, part), attempt, kFolder);
  if (folder.status.st_uid == config.agent_uid) {
    return;  // it was never started
  }
  CheckTrusted(config.program);
  const std::string uid = std::to_string(folder.status.st_uid);
  Require(ReadTrusted(config.texts.at("used") + "/" + attempt) == uid,
          fmt::format("{}/{} is not of the user as whom it was started", part, attempt));
  Become(Checked(config, getpwuid(folder.status.st_uid), "uid " + uid), folder.fd);
  words.insert(words.begin(), config.state + "/attempts/" + attempt);
  Execute(config, words);
}

void End(const Config& config, const std::string& attempt) {
  const cgroup::Group group = GroupOf(config, attempt);
  const std::size_t killed = group.Members().size();
  Require(group.KillAll(std::chrono::seconds(30)));
  Require(group.Remove());
  if (killed > 0) {
    Log(fmt::format("{} processes killed", killed));
  }
}

// "JOB-ATTEMPT", digits alone: it becomes the name of folders.
void CheckAttempt(const std::string& text) {
  const std::size_t dash = std::min(text.find('-'), text.size() - 1);
  Require(!text.empty() && fmt::format("{}-{}", NumberFrom<std::uint64_t>(text.substr(0, dash)),
                                       NumberFrom<std::uint32_t>(text.substr(dash + 1))) == text,
          "'" + text + "' is no attempt");
}

int Run(const std::vector<std::string>& words) {
  LeaveCaller();
  call = words.size() < 2 ? "(no call)" : words[0].substr(0, 16) + " " + words[1].substr(0, 32);
  Require(geteuid() == 0, "it does not belong to root, or is not setuid");
  const Config config = ReadConfig();
  Require(getuid() == config.agent_uid || getuid() == 0,
          fmt::format("uid {} is not the agent's", getuid()));
  Require(words.size() >= 2 && words.size() <= 4, "expected a call and an attempt");
  CheckAttempt(words[1]);
  if (words[0] == "start") {
    Start(config, words);
  }
  if (words[0] == "limit") {
    Require(GroupOf(config, words[1]).Limit(LimitsFrom(config, words)));
  } else if (words[0] == "end") {
    End(config, words[1]);
  } else if (words[0] == "log") {
    Require(words.size() == 3, "expected RANK");
    RunAsOwner(config, "logs", words[1],
               {"--log", std::to_string(NumberFrom<std::uint32_t>(words[2]))});
  } else if (words[0] == "clear") {
    RunAsOwner(config, "attempts", words[1], {"--clear"});
  } else {
    Refuse("there is no such call");
  }
  return 0;
}

}  // namespace
}  // namespace trainyard::launcher

int main(int count, char** arguments) {  // NOLINT(bugprone-exception-escape): out of memory
  return trainyard::launcher::Run({arguments + std::min(1, count), arguments + count});
}
