// SPDX-License-Identifier: Apache-2.0
// trainyard login, user, node, certs: who may use a cluster, and which machines are its nodes.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/config_commands.h"
#include "identity/door.h"
#include "identity/secret_file.h"
#include "identity/token.h"
#include "rpc/address.h"
#include "rpc/identity_calls.h"

namespace trainyard::cli {
namespace {

struct IdentityOptions {
  std::string controller = "127.0.0.1:7077";
  std::string name;
  std::string role;  // empty: as the controller is configured
  std::string file;  // that a secret is read from or written to
  int uid = -1;
  double life = 3600;
};

void AddControllerAddress(CLI::App& command, IdentityOptions& options) {
  command.add_option("--controller", options.controller, "HOST[:PORT] of the controller")
      ->envname("TRAINYARD_CONTROLLER")
      ->capture_default_str();
}

void AddOutput(CLI::App& command, IdentityOptions& options) {
  command.add_option(
      "--output", options.file,
      "file for the secret, readable by you alone (default, and -: standard output)");
}

Result<v1::ManageReply> Manage(const IdentityOptions& options, const v1::ManageRequest& request) {
  ASSIGN_OR_RETURN(const std::string address,
                   rpc::ControllerAddress("--controller", options.controller));
  ASSIGN_OR_RETURN(const rpc::Route route, rpc::FindRoute(address, {}));
  return rpc::Manage(route, request);
}

// What is shown once.
Status GiveSecret(const IdentityOptions& options, const v1::ManageReply& reply) {
  if (!options.file.empty() && options.file != "-") {
    return identity::WriteSecretFile(options.file, reply.secret() + "\n");
  }
  fmt::print("{}\n", reply.secret());
  return {};
}

Status LogIn(const IdentityOptions& options) {
  ASSIGN_OR_RETURN(const std::string address,
                   rpc::ControllerAddress("--controller", options.controller));
  std::string secret;
  if (options.file == "-") {
    secret.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  } else {
    ASSIGN_OR_RETURN(secret, identity::ReadSecretFile(options.file));
  }
  RETURN_IF_ERROR(rpc::LogIn(address, secret));
  fmt::print("logged in at {}; kept in {}\n", address, rpc::LoginFile(address));
  return {};
}

Status AddUser(const IdentityOptions& options) {
  v1::ManageRequest request;
  v1::ManageRequest::AddUser& add = *request.mutable_add_user();
  add.set_user(options.name);
  if (!options.role.empty()) {
    ASSIGN_OR_RETURN(const v1::Caller::Role role, identity::RoleNamed(options.role));
    add.set_role(role);
  }
  if (options.uid < 0) {
    const std::optional<uid_t> uid = identity::UserId(options.name);
    if (!uid) {
      return InvalidArgument(fmt::format(
          "this machine knows no user '{}'; expected one, or --uid with the uid that the user has "
          "on the nodes",
          options.name));
    }
    add.set_uid(*uid);
  } else {
    add.set_uid(static_cast<std::uint32_t>(options.uid));
  }
  ASSIGN_OR_RETURN(const v1::ManageReply reply, Manage(options, request));
  if (options.role.empty() && reply.role() != v1::Caller::USER) {
    Tell(
        fmt::format("{0} is {1} here, as the controller is configured, and so is this login; "
                    "'--role user' makes one that is not",
                    options.name, identity::RoleName(reply.role())));
  }
  return GiveSecret(options, reply);
}

Status RemoveUser(const IdentityOptions& options) {
  v1::ManageRequest request;
  request.mutable_remove_user()->set_name(options.name);
  const Result<v1::ManageReply> reply = Manage(options, request);
  return reply.ok() ? Status() : Status(reply.error());
}

Status MakeNodeToken(const IdentityOptions& options) {
  v1::ManageRequest request;
  request.mutable_node_token()->set_node(options.name);
  request.mutable_node_token()->set_life_s(options.life);
  ASSIGN_OR_RETURN(const v1::ManageReply reply, Manage(options, request));
  return GiveSecret(options, reply);
}

Result<v1::IdentityBook> Book(const IdentityOptions& options) {
  v1::ManageRequest request;
  request.mutable_list();
  ASSIGN_OR_RETURN(const v1::ManageReply reply, Manage(options, request));
  return reply.book();
}

Status ListUsers(const IdentityOptions& options) {
  ASSIGN_OR_RETURN(const v1::IdentityBook book, Book(options));
  fmt::print("{:<20} {:>8}  role\n", "user", "uid");
  for (const v1::IdentityBook::User& user : book.users()) {
    fmt::print("{:<20} {:>8}  {}\n", Printable(user.user()), user.uid(),
               identity::RoleName(user.role()));
  }
  return {};
}

Status ListCertificates(const IdentityOptions& options) {
  ASSIGN_OR_RETURN(const v1::IdentityBook book, Book(options));
  fmt::print("{:<20} {:<8} {:<20} {}\n", "node", "state", "ends", "serial");
  for (const v1::IdentityBook::Certificate& one : book.certificates()) {
    fmt::print("{:<20} {:<8} {:<20} {}\n", Printable(one.node()),
               one.revoked() ? "revoked" : "good", LocalTime(one.ends()), one.serial());
  }
  for (const v1::IdentityBook::NodeToken& token : book.tokens()) {
    fmt::print("{:<20} {:<8} {:<20} -\n", Printable(token.node()), "token",
               LocalTime(token.expires()));
  }
  for (const v1::IdentityBook::Change& change : book.changes()) {
    fmt::print("{}  {} {}\n", LocalTime(change.at()), Printable(change.by()),
               Printable(change.what()));
  }
  return {};
}

Status Revoke(const IdentityOptions& options) {
  v1::ManageRequest request;
  request.mutable_revoke()->set_name(options.name);
  const Result<v1::ManageReply> reply = Manage(options, request);
  return reply.ok() ? Status() : Status(reply.error());
}

using RunIdentity = Status (*)(const IdentityOptions&);

struct IdentityWords {
  const char* name;
  const char* about;
  const char* what;  // the word for what it is about; empty: none
  RunIdentity run;
};

struct Added {
  CLI::App& command;
  IdentityOptions& options;
};

Added Add(CLI::App& above, const IdentityWords& words, Command& chosen) {
  const auto options = std::make_shared<IdentityOptions>();
  CLI::App* command = above.add_subcommand(words.name, words.about);
  AddControllerAddress(*command, *options);
  if (*words.what != '\0') {
    command->add_option(words.what, options->name)->required();
  }
  command->callback([options, run = words.run, &chosen] {
    chosen.run = [options, run] { return run(*options); };
  });
  return {.command = *command, .options = *options};
}

void AddUserCommands(CLI::App& app, Command& chosen) {
  CLI::App* user = app.add_subcommand("user", "logins of users at other machines (for admins)");
  user->require_subcommand(1);
  const Added add =
      Add(*user, {"add", "make a login, and show its secret once", "USER", AddUser}, chosen);
  add.command.add_option("--role", add.options.role,
                         "user, operator or admin (default: what the controller's --operators and "
                         "--admins make of the name, otherwise user)");
  add.command.add_option("--uid", add.options.uid,
                         "the user's uid on the nodes (default: the one here)");
  AddOutput(add.command, add.options);
  Add(*user, {"remove", "end the logins of a user", "USER", RemoveUser}, chosen);
  Add(*user, {"list", "all logins", "", ListUsers}, chosen);
}

void AddNodeCommands(CLI::App& app, Command& chosen) {
  CLI::App* node =
      app.add_subcommand("node", "which nodes there are, and which machines may join (for admins)");
  node->require_subcommand(1);
  const Added token = Add(
      *node,
      {"token", "make a token by which the agent of one node joins once", "NODE", MakeNodeToken},
      chosen);
  token.command.add_option("--life", token.options.life, "seconds in which it may be used")
      ->capture_default_str();
  AddOutput(token.command, token.options);
  AddNodeChanges(*node, chosen);
  Add(*node, {"revoke", "let a node in no more until it joins anew", "NODE", Revoke}, chosen);
}

}  // namespace

void AddIdentity(CLI::App& app, Command& chosen) {
  const Added login = Add(
      app, {"login", "prove to a controller on another machine who you are", "", LogIn}, chosen);
  login.command
      .add_option("--token-file", login.options.file,
                  "the file with what 'trainyard user add' has given; -: standard input")
      ->required();
  AddUserCommands(app, chosen);
  AddNodeCommands(app, chosen);
  Add(app,
      {"certs", "certificates of nodes, and who has changed what (for admins)", "",
       ListCertificates},
      chosen);
}

}  // namespace trainyard::cli
