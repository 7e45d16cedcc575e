// SPDX-License-Identifier: Apache-2.0
#include "identity/munge.h"

#include <fmt/core.h>
#include <munge.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace trainyard::identity {
namespace {

// In each credential, so that one for another service is none.
constexpr std::string_view kMungePurpose = "trainyard token 1";

using Context = std::unique_ptr<munge_ctx, decltype(&munge_ctx_destroy)>;

Context ContextOf(const std::string& socket) {
  Context context(munge_ctx_create(), &munge_ctx_destroy);
  if (context != nullptr && !socket.empty()) {
    munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, socket.c_str());
  }
  return context;
}

Error MungeRefused(const Context& context, munge_err_t code) {
  const char* const why = context == nullptr ? nullptr : munge_ctx_strerror(context.get());
  return Failed(
      fmt::format("munge: {}; expected munged to run with the cluster's key on both "
                  "machines",
                  why == nullptr ? munge_strerror(code) : why));
}

}  // namespace

Result<std::string> MakeMungeCredential(const std::string& socket) {
  const Context context = ContextOf(socket);
  char* made = nullptr;
  const munge_err_t code = munge_encode(&made, context.get(), kMungePurpose.data(),
                                        static_cast<int>(kMungePurpose.size()));
  const std::unique_ptr<char, decltype(&std::free)> held(made, &std::free);
  if (code != EMUNGE_SUCCESS) {
    return MungeRefused(context, code);
  }
  return std::string(made);
}

Result<uid_t> ReadMungeCredential(const std::string& credential, const std::string& socket) {
  const Context context = ContextOf(socket);
  void* payload = nullptr;
  int size = 0;
  uid_t uid{};
  gid_t gid{};
  const munge_err_t code =
      munge_decode(credential.c_str(), context.get(), &payload, &size, &uid, &gid);
  const std::unique_ptr<void, decltype(&std::free)> held(payload, &std::free);
  if (code != EMUNGE_SUCCESS) {
    return MungeRefused(context, code);
  }
  if (std::string_view(static_cast<const char*>(payload), static_cast<std::size_t>(size)) !=
      kMungePurpose) {
    return Failed("munge: the credential is for another purpose; expected one of 'trainyard'");
  }
  return uid;
}

}  // namespace trainyard::identity
