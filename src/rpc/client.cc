// SPDX-License-Identifier: Apache-2.0
#include "rpc/client.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "io/text_check.h"
#include "rpc/channel.h"
#include "rpc/wire.h"
#include "service/call_error.h"
#include "service/calls.h"
#include "trainyard/live.grpc.pb.h"

namespace trainyard::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLeastPause{100};
constexpr milliseconds kLongestPause{2'000};
constexpr milliseconds kTurnPatience{60'000};  // for the turn of a user who makes many calls

// Pauses that double, each shortened by up to a half at random so that many agents do not come
// back all at once.
class Backoff {
 public:
  void Reset() { next_ = kLeastPause; }
  [[nodiscard]] milliseconds Next() {
    const milliseconds pause = next_;
    next_ = std::min(2 * next_, kLongestPause);
    return std::max(kLeastPause, milliseconds(std::uniform_int_distribution(
                                     pause.count() / 2, pause.count())(random_)));
  }

 private:
  milliseconds next_ = kLeastPause;
  std::minstd_rand random_{std::random_device{}()};
};

// ----------------------------------------------------------------------------------------- clients

std::optional<std::string> NotUtf8(const google::protobuf::Message& message);

// The same in one field. A server would only say that it cannot understand the whole message.
std::optional<std::string> NotUtf8In(  // NOLINT(misc-no-recursion)
    const google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& values = *message.GetReflection();
  const int size = field.is_repeated() ? values.FieldSize(message, &field)
                                       : static_cast<int>(values.HasField(message, &field));
  for (int i = 0; i < size; ++i) {
    if (field.type() == Field::TYPE_STRING) {
      const std::string text = field.is_repeated() ? values.GetRepeatedString(message, &field, i)
                                                   : values.GetString(message, &field);
      if (!io::IsUtf8(text)) {
        return field.name();
      }
    } else if (field.type() == Field::TYPE_MESSAGE) {
      auto inner = NotUtf8(field.is_repeated() ? values.GetRepeatedMessage(message, &field, i)
                                               : values.GetMessage(message, &field));
      if (inner) {
        return inner;
      }
    }
  }
  return std::nullopt;
}

// The first field with a text that is not UTF-8, which no message can carry.
std::optional<std::string> NotUtf8(  // NOLINT(misc-no-recursion)
    const google::protobuf::Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    if (auto found = NotUtf8In(message, *message.GetDescriptor()->field(i))) {
      return found;
    }
  }
  return std::nullopt;
}

// Says the line once, unless the thread that it returns is gone by then.
std::jthread TellAfterSilence(const std::function<void(const std::string&)>& tell,
                              std::string line) {
  return std::jthread([&tell, line = std::move(line)](const std::stop_token& over) {
    constexpr milliseconds kSilence{2'000};
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any ended;
    ended.wait_for(lock, over, kSilence, [] { return false; });
    if (!over.stop_requested()) {
      tell(line);
    }
  });
}

// Whether the controller keeps the answer back until something happens.
bool IsToWait(const v1::ClientRequest& request) {
  return request.attach().waits() || request.submit().wait_for_verdict() ||
         request.jobs().wait() > 0;
}

class Client final : public ClusterClient {
 public:
  Client(std::string address, std::function<void(const std::string&)> tell, RouteOptions options)
      : address_(std::move(address)), tell_(std::move(tell)), options_(std::move(options)) {}

  Result<v1::ClientReply> Call(const v1::ClientRequest& request, Duration timeout,
                               Duration patience) override {
    if (const std::optional<std::string> field = NotUtf8(request)) {
      return InvalidArgument(fmt::format("the {} is not UTF-8; expected UTF-8 text",
                                         base::ReplaceAll(*field, "_", " ")));
    }
    const auto give_up = steady_clock::now() + patience;
    const auto give_up_waiting = steady_clock::now() + kTurnPatience;
    bool told = false;
    bool renewed = false;  // the route has been asked for once more
    Backoff backoff;
    while (true) {
      RETURN_IF_ERROR(Reach());
      grpc::ClientContext context;
      v1::ClientReply reply;
      const grpc::Status status = Try(request, timeout, context, reply);
      if (status.ok()) {
        return reply;
      }
      if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED &&
          !std::exchange(renewed, true)) {
        stub_.reset();  // its token is too old, or it came before the controller's socket
        continue;
      }
      if (const std::optional<milliseconds> wait = RetryAfter(context);
          wait && steady_clock::now() + *wait < std::max(give_up, give_up_waiting)) {
        std::this_thread::sleep_for(*wait);
        continue;
      }
      const bool answered = context.GetServerTrailingMetadata().count(kOwnWords) > 0;
      if (answered || status.error_code() != grpc::StatusCode::UNAVAILABLE) {
        return ErrorOf(status, timeout);
      }
      stub_.reset();
      const milliseconds pause = backoff.Next();
      const std::string missing = fmt::format(
          "no controller answers at {}; start one with 'trainyard up' or name it with "
          "--controller",
          address_);
      if (steady_clock::now() + pause > give_up) {
        return Failed(missing);
      }
      if (!std::exchange(told, true) && tell_) {
        tell_(fmt::format("{}; trying again for {}", missing,
                          base::ShortDuration(Seconds(patience))));
      }
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  // When a controller that has had too many calls wants to hear this one again; none: it has not
  // said so. Up to twice as long as it says, so that many who wait do not come all at once.
  [[nodiscard]] std::optional<milliseconds> RetryAfter(const grpc::ClientContext& context) {
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto found = metadata.find(kRetryAfterMs);
    if (found == metadata.end()) {
      return std::nullopt;
    }
    const auto ms = base::ToNumber({found->second.data(), found->second.size()});
    const auto least = std::clamp(milliseconds(static_cast<std::int64_t>(ms.value_or(0))),
                                  kLeastPause, kTurnPatience);
    return least +
           milliseconds(std::uniform_int_distribution<std::int64_t>(0, least.count())(random_));
  }

  // Has a connection and what proves who the caller is.
  [[nodiscard]] Status Reach() {
    // Before its token is too old, which the controller would write down as a refusal.
    constexpr std::chrono::minutes kFresh(8);
    if (stub_ == nullptr || steady_clock::now() - reached_ > kFresh) {
      ASSIGN_OR_RETURN(route_, FindRoute(address_, options_));
      reached_ = steady_clock::now();
      stub_ = v1::Cluster::NewStub(NewChannel(route_));
    }
    return {};
  }

  grpc::Status Try(const v1::ClientRequest& request, Duration timeout, grpc::ClientContext& context,
                   v1::ClientReply& reply) {
    Authorize(context, route_);
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    std::jthread impatience;
    if (tell_ && !IsToWait(request)) {
      impatience = TellAfterSilence(
          tell_, fmt::format("the controller at {} has not answered yet; waiting up to {} (it "
                             "answers once its journal is written: if its disk is full or slow, "
                             "its log says so)",
                             address_, base::ShortDuration(Seconds(timeout))));
    }
    switch (request.kind_case()) {
#define TRAINYARD_CALL(Name, field, family) \
  case v1::ClientRequest::k##Name:          \
    return stub_->Name(&context, request.field(), reply.mutable_##field());
      TRAINYARD_CLUSTER_CALLS(TRAINYARD_CALL)
#undef TRAINYARD_CALL
      case v1::ClientRequest::KIND_NOT_SET:
        break;
    }
    CHECK(request.kind_case() != v1::ClientRequest::KIND_NOT_SET);
    return {};
  }

  [[nodiscard]] Error ErrorOf(const grpc::Status& status, Duration timeout) const {
    switch (status.error_code()) {
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        return Failed(fmt::format("the controller at {} has not answered within {}", address_,
                                  base::ShortDuration(Seconds(timeout))));
      case grpc::StatusCode::UNIMPLEMENTED:
        return Failed(
            fmt::format("what answers at {} does not know this call; expected a "
                        "controller of the same version",
                        address_));
      default:
        return Error{service::CodeOf(status.error_code()), status.error_message()};
    }
  }

  const std::string address_;
  const std::function<void(const std::string&)> tell_;
  const RouteOptions options_;
  std::minstd_rand random_{std::random_device{}()};
  Route route_;
  steady_clock::time_point reached_{};
  std::unique_ptr<v1::Cluster::Stub> stub_;  // none: not connected
};

// ------------------------------------------------------------------------------------------ agents

using GrpcStream = grpc::ClientReaderWriter<v1::AgentMessage, v1::ControllerMessage>;

// Blocking calls on two threads: the stream's own one connects and reads, the writer empties the
// queue.
class Stream final : public AgentStream {
 public:
  Stream(std::string address, Callbacks callbacks, RouteOptions options)
      : address_(std::move(address)),
        callbacks_(std::move(callbacks)),
        options_(std::move(options)),
        thread_([this] { Run(); }) {}

  ~Stream() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      if (context_ != nullptr) {
        context_->TryCancel();
      }
    }
    changed_.notify_all();
    thread_.join();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Send(v1::AgentMessage message) override {
    const std::lock_guard lock(mutex_);
    if (!connected_) {
      return;
    }
    queued_bytes_ += message.ByteSizeLong();
    queue_.push_back(std::move(message));
    if (queued_bytes_ > kMostQueuedBytes) {
      context_->TryCancel();
    }
    changed_.notify_all();
  }

 private:
  void Run() {
    Backoff backoff;
    while (true) {
      if (Attach()) {
        backoff.Reset();
      }
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, backoff.Next(), [this] { return stopping_; })) {
        return;
      }
    }
  }

  // One connection from its opening to its end. Whether the controller had anything to say.
  bool Attach() {
    const Result<Route> route = FindRoute(address_, options_);
    if (!route.ok()) {
      Refused(route.error().message);
      return false;
    }
    const auto stub = v1::Agents::NewStub(NewChannel(route.value()));
    grpc::ClientContext context;
    Authorize(context, route.value());
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) {
        return false;
      }
      context_ = &context;
    }
    const std::unique_ptr<GrpcStream> stream = stub->Attach(&context);
    stream->WaitForInitialMetadata();
    const bool heard =
        context.GetServerInitialMetadata().count(kOwnWords) > 0 && Converse(*stream, context);
    {
      const std::lock_guard lock(mutex_);
      context_ = nullptr;
    }
    const grpc::Status status = stream->Finish();
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
        status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
      Refused(status.error_message());
    } else if (status.error_message().find("certificate verify failed") != std::string::npos) {
      Refused(
          "its certificate is of another authority than the one that this node has joined; "
          "expected "
          "--join-token-file with the file of a new 'trainyard node token'");
    }
    return heard;
  }

  void Refused(const std::string& why) const {
    if (callbacks_.on_refused) {
      callbacks_.on_refused(why);
    }
  }

  bool Converse(GrpcStream& stream, grpc::ClientContext& context) {
    SetConnected(true);
    std::thread writer([&] { WriteQueue(stream); });
    callbacks_.on_connected();
    bool heard = false;
    for (v1::ControllerMessage message; stream.Read(&message); message.Clear()) {
      heard = true;
      callbacks_.on_message(std::move(message));
    }
    SetConnected(false);
    context.TryCancel();  // the writer may be waiting for room
    writer.join();
    callbacks_.on_disconnected();
    return heard;
  }

  void SetConnected(bool connected) {
    {
      const std::lock_guard lock(mutex_);
      connected_ = connected;
      queue_.clear();
      queued_bytes_ = 0;
    }
    changed_.notify_all();
  }

  // Until the connection ends.
  void WriteQueue(GrpcStream& stream) {
    while (const std::optional<v1::AgentMessage> message = TakeFirst()) {
      if (!stream.Write(*message)) {
        return;
      }
    }
  }

  [[nodiscard]] std::optional<v1::AgentMessage> TakeFirst() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !connected_ || !queue_.empty(); });
    if (!connected_) {
      return std::nullopt;
    }
    v1::AgentMessage message = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= message.ByteSizeLong();
    return message;
  }

  const std::string address_;
  const Callbacks callbacks_;
  const RouteOptions options_;

  std::mutex mutex_;
  std::condition_variable changed_;  // any of these
  bool stopping_ = false;
  bool connected_ = false;
  grpc::ClientContext* context_ = nullptr;  // of the call that is open, if any
  std::deque<v1::AgentMessage> queue_;
  std::size_t queued_bytes_ = 0;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<ClusterClient> Connect(const std::string& address,
                                       std::function<void(const std::string& line)> tell,
                                       RouteOptions route) {
  QuietGrpc();
  return std::make_unique<Client>(address, std::move(tell), std::move(route));
}

std::unique_ptr<AgentStream> AttachAgent(const std::string& address,
                                         AgentStream::Callbacks callbacks, RouteOptions route) {
  QuietGrpc();
  return std::make_unique<Stream>(address, std::move(callbacks), std::move(route));
}

}  // namespace trainyard::rpc
