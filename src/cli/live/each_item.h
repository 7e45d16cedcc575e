// SPDX-License-Identifier: Apache-2.0
// The same call for several jobs or nodes.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <type_traits>
#include <vector>

#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "rpc/client.h"
#include "trainyard/status.h"

namespace trainyard::cli {

// Calls for each of `items`, whatever comes of the others. `show(reply)` prints one as text, or
// gives the message that is printed as JSON. The first error is returned, the others are printed.
template <typename Item, typename MakeRequest, typename Show>
Status ForEach(rpc::ClusterClient& client, bool json, const std::vector<Item>& items,
               MakeRequest make_request, Show show) {
  std::vector<std::remove_cvref_t<decltype(show(v1::ClientReply()))>> list;
  Status first;
  for (const Item& item : items) {
    const Result<v1::ClientReply> reply = client.Call(make_request(item), kTimeout);
    if (reply.ok()) {
      list.push_back(show(reply.value()));
    } else if (first.ok()) {
      first = reply.error();
    } else {
      fmt::print(stderr, "{}\n", reply.error().message);
    }
  }
  if (json) {
    PrintJsonList(list);
  }
  return first;
}

}  // namespace trainyard::cli
