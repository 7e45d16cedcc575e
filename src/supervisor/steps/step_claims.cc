// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_claims.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace trainyard::supervisor {
namespace {

constexpr off_t kOfNode = off_t{1} << 20;  // places
constexpr off_t kFirstGpu = off_t{1} << 19;
constexpr off_t kTurn = off_t{1} << 60;  // beyond all nodes

io::Descriptor OpenClaims(const std::string& path) {
  constexpr mode_t kMine = 0600;
  return io::Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMine));
}

// One place. It belongs to the open file, so that it ends with the last process that has that.
struct flock LockAt(off_t place) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  return lock;
}

struct flock LockOf(Claimable kind, int node, int place) {
  return LockAt(node * kOfNode + (kind == Claimable::kGpu ? kFirstGpu : 0) + place);
}

}  // namespace

StepClaims::StepClaims(std::string path) : path_(std::move(path)), file_(OpenClaims(path_)) {}

io::Descriptor StepClaims::Turn() const {
  io::Descriptor turn = OpenClaims(path_);
  struct flock lock = LockAt(kTurn);
  while (fcntl(turn.get(), F_OFD_SETLKW, &lock) != 0 && errno == EINTR) {
  }
  return turn;
}

std::vector<int> StepClaims::Free(Claimable kind, int node, int total) const {
  std::vector<int> free;
  for (int place = 0; place < total; ++place) {
    struct flock lock = LockOf(kind, node, place);
    if (fcntl(file_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) {
      free.push_back(place);
    }
  }
  return free;
}

bool StepClaims::Claim(Claimable kind, int node, const std::vector<int>& places) {
  return std::all_of(places.begin(), places.end(), [&](int place) {
    struct flock lock = LockOf(kind, node, place);
    return fcntl(file_.get(), F_OFD_SETLK, &lock) == 0;
  });
}

// Also of processes that have the file from this one.
void StepClaims::ReleaseAll() {
  struct flock all = LockAt(0);
  all.l_type = F_UNLCK;
  all.l_len = 0;
  fcntl(file_.get(), F_OFD_SETLK, &all);
}

}  // namespace trainyard::supervisor
