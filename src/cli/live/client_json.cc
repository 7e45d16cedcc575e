// SPDX-License-Identifier: Apache-2.0
#include "cli/live/client_json.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <optional>

#include "io/json.h"
#include "live/jobs/job_request.h"
#include "trainyard/live.pb.h"

namespace trainyard::cli {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const google::protobuf::Message& message);

// `at`: which element of a repeated field.
Json FieldJson(const google::protobuf::Message& message,
               const google::protobuf::FieldDescriptor& field, std::optional<int> at) {
  using Field = google::protobuf::FieldDescriptor;
  using Values = google::protobuf::Reflection;
  const Values& values = *message.GetReflection();
  const auto get = [&](auto one, auto of_many) -> Json {
    return at ? (values.*of_many)(message, &field, *at) : (values.*one)(message, &field);
  };
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return get(&Values::GetInt32, &Values::GetRepeatedInt32);
    case Field::CPPTYPE_INT64:
      return get(&Values::GetInt64, &Values::GetRepeatedInt64);
    case Field::CPPTYPE_UINT32:
      return get(&Values::GetUInt32, &Values::GetRepeatedUInt32);
    case Field::CPPTYPE_UINT64:
      return get(&Values::GetUInt64, &Values::GetRepeatedUInt64);
    case Field::CPPTYPE_DOUBLE:
      return get(&Values::GetDouble, &Values::GetRepeatedDouble);
    case Field::CPPTYPE_BOOL:
      return get(&Values::GetBool, &Values::GetRepeatedBool);
    case Field::CPPTYPE_STRING:
      return get(&Values::GetString, &Values::GetRepeatedString);
    case Field::CPPTYPE_ENUM:
      return live::LowerCase(
          (at ? values.GetRepeatedEnum(message, &field, *at) : values.GetEnum(message, &field))
              ->name());
    case Field::CPPTYPE_MESSAGE:
      return ToJson(at ? values.GetRepeatedMessage(message, &field, *at)
                       : values.GetMessage(message, &field));
    case Field::CPPTYPE_FLOAT:  // live.proto has none
      break;
  }
  return nullptr;
}

// By which a client goes on with a list of jobs: `status` shows all of it.
bool IsOfPages(const google::protobuf::FieldDescriptor& field) {
  return field.containing_type() == v1::JobsReply::descriptor() &&
         (field.number() == v1::JobsReply::kVersionFieldNumber ||
          field.number() == v1::JobsReply::kNextFieldNumber);
}

// Their names are bytes of users' choice, and what `sacct --json` shows.
bool IsOfSteps(const google::protobuf::FieldDescriptor& field) {
  return field.message_type() == v1::StepRecord::descriptor();
}

// protobuf's own mapping writes 64-bit integers, job ids among them, as strings. A job's command
// and environment, which controllers keep to themselves, are left out: empty lists would say that
// it has none.
Json ToJson(const google::protobuf::Message& message) {
  Json json = Json::object();
  const google::protobuf::Reflection& values = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (IsOfPages(field) || IsOfSteps(field) ||
        (field.is_repeated() && values.FieldSize(message, &field) == 0 &&
         (message.GetDescriptor() == v1::LaunchSpec::descriptor() || field.name() == "command"))) {
      continue;
    }
    Json& value = json[field.name()];
    if (field.is_repeated()) {
      value = Json::array();
      for (int at = 0; at < values.FieldSize(message, &field); ++at) {
        value.push_back(FieldJson(message, field, at));
      }
    } else if (!field.has_presence() || values.HasField(message, &field)) {
      value = FieldJson(message, field, std::nullopt);
    }
  }
  return json;
}

void Print(const Json& json) {
  // Logs and names may hold anything.
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

void PrintJson(const google::protobuf::Message& message) { Print(ToJson(message)); }

void PrintJsonLine(const google::protobuf::Message& message) {
  fmt::print("{}\n", ToJson(message).dump(-1, ' ', false, Json::error_handler_t::replace));
}

void PrintJsonList(const std::vector<const google::protobuf::Message*>& messages) {
  Json list = Json::array();
  for (const google::protobuf::Message* const message : messages) {
    list.push_back(ToJson(*message));
  }
  Print(list);
}

}  // namespace trainyard::cli
