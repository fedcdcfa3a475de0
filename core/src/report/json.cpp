// SPDX-License-Identifier: Apache-2.0
#include "report/json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "triax/error.hpp"

namespace triax::report {

using Json = nlohmann::ordered_json;

struct JsonObject::Impl {
  Json value = Json::object();
  void put(std::string_view key, Json item) { value[std::string(key)] = std::move(item); }
};

JsonObject::JsonObject() : impl_(std::make_unique<Impl>()) {}
JsonObject::~JsonObject() = default;
JsonObject::JsonObject(JsonObject&&) noexcept = default;
JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;

JsonObject& JsonObject::set(std::string_view key, std::string_view value) {
  impl_->put(key, std::string(value));
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, double value) {
  if (!std::isfinite(value)) throw Error(text("{} is {}, which JSON cannot hold", key, value));
  impl_->put(key, value);
  return *this;
}

JsonObject& JsonObject::set_null(std::string_view key) {
  impl_->put(key, nullptr);
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, JsonObject value) {
  impl_->put(key, std::move(value.impl_->value));
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, std::vector<JsonObject> values) {
  Json list = Json::array();
  for (JsonObject& value : values) list.push_back(std::move(value.impl_->value));
  impl_->put(key, std::move(list));
  return *this;
}

JsonObject& JsonObject::set(std::string_view key, const std::vector<std::string>& values) {
  impl_->put(key, Json(values));
  return *this;
}

JsonObject& JsonObject::set_bool(std::string_view key, bool value) {
  impl_->put(key, value);
  return *this;
}

JsonObject& JsonObject::set_signed(std::string_view key, std::int64_t value) {
  impl_->put(key, value);
  return *this;
}

JsonObject& JsonObject::set_unsigned(std::string_view key, std::uint64_t value) {
  impl_->put(key, value);
  return *this;
}

std::string JsonObject::line() const {
  return impl_->value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace triax::report
