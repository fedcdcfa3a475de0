// SPDX-License-Identifier: Apache-2.0
// setp, selp and predicates of the interpreter.
#include <cmath>
#include <functional>
#include <limits>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

template <class T>
using Predicate = std::function<bool(T, T)>;

template <class T>
void check(const std::string& type, const std::vector<T>& values,
           const std::vector<std::pair<std::string, Predicate<T>>>& compares) {
  std::vector<Row> rows;
  for (const T a : values)
    for (const T b : values) {
      Row row{};
      std::memcpy(&row[0], &a, sizeof(T));
      std::memcpy(&row[1], &b, sizeof(T));
      rows.push_back(row);
    }
  const std::string reg = (std::is_floating_point_v<T> ? "f" : "b") + std::to_string(8 * sizeof(T));
  for (const auto& [name, compare] : compares) {
    const auto got = evaluate("setp." + name + "." + type + " $d, $1, $2", "pred", {reg, reg}, rows);
    std::size_t n = 0;
    for (const T a : values)
      for (const T b : values)
        EXPECT_EQ(got[n++], compare(a, b) ? 1u : 0u) << name << "." << type << " of " << a << ", " << b;
  }
}

template <class T>
std::vector<std::pair<std::string, Predicate<T>>> ordered() {
  return {{"eq", [](T a, T b) { return a == b; }},
          {"ne", [](T a, T b) { return a < b || a > b; }},
          {"lt", std::less<T>()},
          {"le", std::less_equal<T>()},
          {"gt", std::greater<T>()},
          {"ge", std::greater_equal<T>()}};
}

template <class T>
void check_integer(const std::string& type) {
  using Limits = std::numeric_limits<T>;
  auto compares = ordered<T>();
  if (std::is_unsigned_v<T>) {
    compares.insert(compares.end(), {{"lo", std::less<T>()},
                                     {"ls", std::less_equal<T>()},
                                     {"hi", std::greater<T>()},
                                     {"hs", std::greater_equal<T>()}});
  }
  check<T>(type,
           {0, 1, 2, static_cast<T>(-1), static_cast<T>(-2), Limits::min(), Limits::max(),
            static_cast<T>(Limits::max() / 2 + 1)},
           compares);
}

template <class T>
void check_float(const std::string& type) {
  using Limits = std::numeric_limits<T>;
  auto unordered = [](T a, T b) { return std::isnan(a) || std::isnan(b); };
  auto compares = ordered<T>();
  for (auto& [name, compare] : ordered<T>()) {
    compares.emplace_back(name + "u", [=, f = compare](T a, T b) { return unordered(a, b) || f(a, b); });
  }
  compares.emplace_back("num", [=](T a, T b) { return !unordered(a, b); });
  compares.emplace_back("nan", unordered);
  check<T>(type,
           {T{0}, -T{0}, 1, -1, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(),
            Limits::max()},
           compares);
}

} // namespace

TEST(PtxCompare, S16) {
  check_integer<std::int16_t>("s16");
}
TEST(PtxCompare, U16) {
  check_integer<std::uint16_t>("u16");
}
TEST(PtxCompare, S32) {
  check_integer<std::int32_t>("s32");
}
TEST(PtxCompare, U32) {
  check_integer<std::uint32_t>("u32");
}
TEST(PtxCompare, S64) {
  check_integer<std::int64_t>("s64");
}
TEST(PtxCompare, U64) {
  check_integer<std::uint64_t>("u64");
}
TEST(PtxCompare, F32) {
  check_float<float>("f32");
}
TEST(PtxCompare, F64) {
  check_float<double>("f64");
}

TEST(PtxCompare, FtzComparesDenormalsAsZero) {
  const std::vector<Row> rows = {{bits(1e-40f), 0, 0, 0}};
  EXPECT_EQ(evaluate("setp.eq.ftz.f32 $d, $1, $2", "pred", {"f32", "f32"}, rows)[0], 1u);
  EXPECT_EQ(evaluate("setp.eq.f32 $d, $1, $2", "pred", {"f32", "f32"}, rows)[0], 0u);
}

TEST(PtxCompare, SelectsByPredicate) {
  const std::vector<Row> rows = {{0x1111222233334444, 0x5555666677778888, 1, 0},
                                 {0x1111222233334444, 0x5555666677778888, 0, 0}};
  const struct {
    std::string type, reg;
    std::uint64_t mask;
  } types[] = {{"b16", "b16", 0xFFFF},     {"u16", "b16", 0xFFFF},     {"b32", "b32", 0xFFFFFFFF},
               {"u32", "b32", 0xFFFFFFFF}, {"f32", "f32", 0xFFFFFFFF}, {"b64", "b64", ~0ull},
               {"u64", "b64", ~0ull},      {"f64", "f64", ~0ull}};
  for (const auto& t : types) {
    const auto got = evaluate("selp." + t.type + " $d, $1, $2, $3", t.reg, {t.reg, t.reg, "pred"}, rows);
    EXPECT_EQ(got[0], rows[0][0] & t.mask) << t.type;
    EXPECT_EQ(got[1], rows[0][1] & t.mask) << t.type;
  }
}

TEST(PtxCompare, LogicOfPredicates) {
  const std::vector<Row> rows = {{0, 0, 0, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}};
  using Bits = std::vector<std::uint64_t>;
  const std::vector<std::string> two = {"pred", "pred"};
  EXPECT_EQ(evaluate("and.pred $d, $1, $2", "pred", two, rows), (Bits{0, 0, 0, 1}));
  EXPECT_EQ(evaluate("or.pred $d, $1, $2", "pred", two, rows), (Bits{0, 1, 1, 1}));
  EXPECT_EQ(evaluate("xor.pred $d, $1, $2", "pred", two, rows), (Bits{0, 1, 1, 0}));
  EXPECT_EQ(evaluate("not.pred $d, $1", "pred", {"pred"}, rows), (Bits{1, 1, 0, 0}));
  EXPECT_EQ(evaluate("mov.pred $d, $1", "pred", {"pred"}, rows), (Bits{0, 0, 1, 1}));
  EXPECT_EQ(evaluate("mov.pred $d, 0; @$1 mov.pred $d, -1", "pred", {"pred"}, rows), (Bits{0, 0, 1, 1}));
}

} // namespace triax::test
