// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire.h"

#include <grpc/support/log.h>

#include <cstdlib>

namespace trainyard {

void QuietGrpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args* /*line*/) {});
  }
}

}  // namespace trainyard
