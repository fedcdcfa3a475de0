// SPDX-License-Identifier: Apache-2.0
// Instructions between lanes, matrices, loads and stores, control flow and calls of the interpreter.
#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using Words = std::vector<std::uint32_t>;

Words run(const std::string& body, unsigned threads = 32, const std::string& before = "") {
  Machine m(warp_kernel(body, before));
  const auto in = m.buffer(Words(256, 0)), out = m.unwritten(4 * threads);
  EXPECT_EQ(m.error_of("k", {1}, {threads}, {in, out}), "") << body;
  return m.read<std::uint32_t>(out, threads);
}

// Lane that PTX's rules for shfl.sync give, written from their text.
std::pair<int, bool> shuffled(char mode, int lane, int b, int c) {
  const int segment = c >> 8 & 31, clamp = c & 31;
  const int max_lane = (lane & segment) | (clamp & ~segment & 31), min_lane = lane & segment;
  int j = 0;
  bool p = false;
  if (mode == 'u') j = lane - b, p = j >= max_lane;
  if (mode == 'd') j = lane + b, p = j <= max_lane;
  if (mode == 'b') j = lane ^ b, p = j <= max_lane;
  if (mode == 'i') j = min_lane | (b & ~segment & 31), p = j <= max_lane;
  return {p ? j : lane, p};
}

} // namespace

TEST(PtxWarps, Shuffles) {
  const struct {
    std::string name;
    char mode;
  } modes[] = {{"up", 'u'}, {"down", 'd'}, {"bfly", 'b'}, {"idx", 'i'}};
  for (const auto& m : modes) {
    for (const int b : {0, 1, 3, 16, 31}) {
      for (const int c : {m.mode == 'u' ? 0 : 31, m.mode == 'u' ? 0x1800 : 0x181F, m.mode == 'u' ? 0x1000 : 0x100F}) {
        const std::string text =
            "shfl.sync." + m.name + ".b32 %r0|%p0, %l, " + std::to_string(b) + ", " + std::to_string(c) + ", -1;\n";
        const auto got = run(text + "selp.u32 %r1, 100, 0, %p0;\nadd.u32 %r0, %r0, %r1;\nst.global.u32 [%out], %r0;");
        for (int l = 0; l < 32; ++l) {
          const auto [from, inside] = shuffled(m.mode, l, b, c);
          EXPECT_EQ(got[l], static_cast<std::uint32_t>(from + (inside ? 100 : 0))) << text << l;
        }
      }
    }
  }
}

TEST(PtxWarps, Votes) {
  const std::string lower = "setp.lt.u32 %p0, %l, 5;\n", store = "st.global.u32 [%out], %r0;";
  EXPECT_EQ(run(lower + "vote.sync.ballot.b32 %r0, %p0, -1;\n" + store), Words(32, 31));
  for (const auto& [name, expected] : {std::pair{"any", 1u}, {"all", 0u}, {"uni", 0u}}) {
    EXPECT_EQ(run(lower + "vote.sync." + name + ".pred %p1, %p0, -1;\nselp.u32 %r0, 1, 0, %p1;\n" + store),
              Words(32, expected))
        << name;
  }
  const auto half = run("setp.lt.u32 %p0, %l, 16;\nmov.u32 %r0, 7;\n@%p0 activemask.b32 %r0;\n" + store);
  EXPECT_EQ(half[0], 0xFFFFu);
  EXPECT_EQ(half[31], 7u);
}

TEST(PtxWarps, LoopsOfLanesEndApart) {
  // Each lane counts to its own number.
  const auto got =
      run("mov.u32 %r0, 0;\nLOOP:\nsetp.ge.u32 %p0, %r0, %l;\n@%p0 bra END;\nadd.u32 %r0, %r0, 1;\nbra.uni "
          "LOOP;\nEND:\nst.global.u32 [%out], %r0;");
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l);
}

TEST(PtxWarps, SpecialRegisters) {
  Machine m(warp_kernel(
      "mov.u32 %r0, %ctaid.y;\nmov.u32 %r1, %tid.y;\nmov.u32 %r2, %nctaid.y;\nmov.u32 %r3, %ntid.y;\nmov.u32 "
      "%r4, %laneid;\nmov.u32 %r5, %warpid;\n"
      "mad.lo.u32 %r6, %r0, %r3, %r1;\nmul.wide.u32 %x1, %r6, 32;\nld.param.u64 %out, [result];\nadd.s64 %out, "
      "%out, %x1;\n"
      "setp.ne.u32 %p0, %t, 0;\n@%p0 ret;\nst.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};\nst.global.v2.u32 "
      "[%out+16], {%r4, %r5};"));
  const auto in = m.buffer(Words(1, 0)), out = m.unwritten(32 * 8);
  EXPECT_EQ(m.error_of("k", {1, 2}, {16, 4}, {in, out}), "");
  const auto got = m.read<std::uint32_t>(out, 64);
  const std::uint32_t last[] = {1, 3, 2, 4, 16, 1};
  for (int n = 0; n < 6; ++n) EXPECT_EQ(got[7 * 8 + n], last[n]) << n;
}

TEST(PtxWarps, SpecialRegistersOfTheThirdDimension) {
  Machine m(
      warp_kernel("mov.u32 %r0, %ctaid.z;\nmov.u32 %r1, %tid.z;\nmov.u32 %r2, %nctaid.z;\nmov.u32 %r3, %ntid.z;\n"
                  "mad.lo.u32 %r6, %r0, %r3, %r1;\nmul.wide.u32 %x1, %r6, 16;\nld.param.u64 %out, [result];\n"
                  "add.s64 %out, %out, %x1;\nst.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};"));
  const auto in = m.buffer(Words(1, 0)), out = m.unwritten(16 * 6);
  EXPECT_EQ(m.error_of("k", {1, 1, 2}, {1, 1, 3}, {in, out}), "");
  const auto got = m.read<std::uint32_t>(out, 24);
  for (std::uint32_t block = 0; block < 2; ++block)
    for (std::uint32_t thread = 0; thread < 3; ++thread)
      EXPECT_EQ(Words(got.begin() + 4 * (3 * block + thread), got.begin() + 4 * (3 * block + thread + 1)),
                (Words{block, thread, 2, 3}));
}

TEST(PtxWarps, MasksOfLanes) {
  const std::pair<std::string, std::uint32_t (*)(std::uint32_t)> masks[] = {
      {"lt", [](std::uint32_t bit) { return bit - 1; }},
      {"le", [](std::uint32_t bit) { return bit | (bit - 1); }},
      {"gt", [](std::uint32_t bit) { return ~(bit | (bit - 1)); }},
      {"ge", [](std::uint32_t bit) { return ~(bit - 1); }},
      {"eq", [](std::uint32_t bit) { return bit; }}};
  for (const auto& [name, of_bit] : masks) {
    const auto got = run("mov.u32 %r0, %lanemask_" + name + ";\nst.global.u32 [%out], %r0;");
    for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], of_bit(1u << l)) << name << l;
  }
}

TEST(PtxWarps, LoadsExtendAndVectorsKeepTheirOrder) {
  Machine m(warp_kernel(
      "ld.global.s8 %r0, [%in+3];\nld.global.u8 %r1, [%in+3];\nld.global.s16 %r2, [%in+2];\nld.global.u16 %r3, "
      "[%in+2];\n"
      "ld.global.v4.u8 {%r4, %r5, %r6, %r7}, [%in];\nst.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};\n"
      "st.global.v4.u8 [%out+16], {%r7, %r6, %r5, %r4};\nld.global.v2.u64 {%x1, %x2}, "
      "[%in+16];\nst.global.v2.u64 [%out+32], {%x2, %x1};\n"
      "cvta.to.global.u64 %x3, %in;\nld.u32 %r8, [%x3+4];\nst.u32 [%out+20], %r8;\nld.volatile.global.u32 %r9, "
      "[%x3+4];\nst.volatile.global.u32 [%out+24], %r9;"));
  const auto in = m.buffer(std::vector<std::uint64_t>{0x55667788F1E2D3C4, 0, 1, 2}), out = m.unwritten(48);
  EXPECT_EQ(m.error_of("k", {1}, {1}, {in, out}), "");
  const auto got = m.read<std::uint32_t>(out, 12);
  EXPECT_EQ(got[0], 0xFFFFFFF1u);
  EXPECT_EQ(got[1], 0xF1u);
  EXPECT_EQ(got[2] & 0xFFFF, 0xF1E2u);
  EXPECT_EQ(got[3], 0xF1E2u);
  EXPECT_EQ(got[4], 0xC4D3E2F1u);
  EXPECT_EQ(got[5], 0x55667788u);
  EXPECT_EQ(got[6], 0x55667788u);
  EXPECT_EQ(got[8], 2u);
  EXPECT_EQ(got[10], 1u);
}

// What an atomic leaves at [%r8] in shared memory, or at [%in]. There is values[0] before; %x1 and %r1 are values[1],
// %x2 and %r2 values[2].
std::uint64_t shared_atomic(const std::string& atomic, const std::vector<std::uint64_t>& values,
                            bool is_global = false) {
  Machine m(
      warp_kernel("mov.u32 %r8, place;\nld.global.b64 %x0, [%in];\nst.shared.b64 [%r8], %x0;\n"
                  "ld.global.b64 %x1, [%in+8];\nld.global.b64 %x2, [%in+16];\nld.global.b32 %r1, [%in+8];\n"
                  "ld.global.b32 %r2, [%in+16];\n" +
                      atomic + "bar.sync 0;\nld.shared.b64 %x0, [%r8];\nst.global.b64 [%out], %x0;",
                  ".shared .align 8 .b8 place[8];\n"));
  const auto in = m.buffer(values), out = m.unwritten(8);
  EXPECT_EQ(m.error_of("k", {1}, {1}, {in, out}), "") << atomic;
  return m.read<std::uint64_t>(is_global ? in : out, 1)[0];
}

TEST(PtxWarps, AtomicsOfEachKind) {
  const struct {
    std::string op;
    std::uint64_t old, b, c, expected;
    bool wide;
  } cases[] = {{"add.u32", 5, 7, 0, 12, false},
               {"add.u64", 1ull << 40, 7, 0, (1ull << 40) + 7, true},
               {"add.f32", bits(1.5f), bits(2.0f), 0, bits(3.5f), false},
               {"add.f64", bits(1.5), bits(2.0), 0, bits(3.5), true},
               {"inc.u32", 5, 5, 0, 0, false},
               {"inc.u32", 4, 5, 0, 5, false},
               {"dec.u32", 0, 9, 0, 9, false},
               {"dec.u32", 4, 9, 0, 3, false},
               {"exch.b32", 4, 9, 0, 9, false},
               {"cas.b32", 4, 4, 8, 8, false},
               {"cas.b32", 4, 5, 8, 4, false},
               {"cas.b64", 4, 4, 8, 8, true},
               {"min.s32", 5, 0xFFFFFFFF, 0, 0xFFFFFFFF, false},
               {"min.u32", 5, 0xFFFFFFFF, 0, 5, false},
               {"max.s32", 5, 0xFFFFFFFF, 0, 5, false},
               {"max.u32", 5, 0xFFFFFFFF, 0, 0xFFFFFFFF, false},
               {"min.s64", 5, ~0ull, 0, ~0ull, true},
               {"max.s64", 5, ~0ull, 0, 5, true},
               {"min.u64", 5, ~0ull, 0, 5, true},
               {"max.u64", 5, ~0ull, 0, ~0ull, true},
               {"and.b32", 12, 10, 0, 8, false},
               {"or.b32", 12, 10, 0, 14, false},
               {"xor.b32", 12, 10, 0, 6, false},
               {"exch.b64", 4, ~0ull, 0, ~0ull, true}};
  const auto is_of_red = [](const std::string& op) { return !op.starts_with("cas") && !op.starts_with("exch"); };
  for (const auto& c : cases) {
    const std::string reg = c.wide ? "%x1" : "%r1", third = c.wide ? "%x2" : "%r2", result = c.wide ? "%x3" : "%r3",
                      n = c.wide ? "64" : "32";
    const std::string third_text = c.op.starts_with("cas") ? ", " + third : "";
    Machine m(warp_kernel("ld.global.b" + n + " " + reg + ", [%in+8];\nld.global.b" + n + " " + third +
                          ", [%in+16];\natom.global." + c.op + " " + result + ", [%in], " + reg + third_text +
                          ";\nst.global.b" + n + " [%out], " + result + ";"));
    const auto in = m.buffer(std::vector<std::uint64_t>{c.old, c.b, c.c}),
               out = m.buffer(std::vector<std::uint64_t>{0});
    EXPECT_EQ(m.error_of("k", {1}, {1}, {in, out}), "") << c.op;
    EXPECT_EQ(m.read<std::uint64_t>(in, 1)[0], c.expected) << c.op;
    EXPECT_EQ(m.read<std::uint64_t>(out, 1)[0], c.old) << c.op;
    const std::string operands = ", " + reg + third_text + ";\n";
    EXPECT_EQ(shared_atomic("atom.shared." + c.op + " " + result + ", [%r8]" + operands, {c.old, c.b, c.c}), c.expected)
        << c.op;
    if (!is_of_red(c.op)) continue;
    for (const std::string space : {"shared", "global"}) {
      const std::string address = space == "shared" ? "[%r8]" : "[%in]";
      EXPECT_EQ(
          shared_atomic("red." + space + "." + c.op + " " + address + operands, {c.old, c.b, c.c}, space == "global"),
          c.expected)
          << space << c.op;
    }
  }
}

TEST(PtxWarps, MatricesOfSharedMemory) {
  // Halves 0, 1, 2, ... of 4 matrices of 8 x 8.
  const std::string shared = ".shared .align 16 .b8 memory[512];\n",
                    fill =
                        "mov.u32 %r8, memory;\nmov.u32 %r9, 0;\nFILL:\nmad.lo.u32 %r10, %r9, 32, %l;\n"
                        "mul.lo.u32 %r11, %r10, 131074;\nadd.u32 %r11, %r11, 65536;\nshl.b32 %r10, %r10, 2;\nadd.u32 "
                        "%r10, %r8, %r10;\nst.shared.u32 [%r10], %r11;\n"
                        "add.u32 %r9, %r9, 1;\nsetp.lt.u32 %p0, %r9, 4;\n@%p0 bra FILL;\nbar.sync 0;\nshl.b32 %r10, "
                        "%l, 4;\nadd.u32 %r10, %r8, %r10;\n";
  for (const bool trans : {false, true}) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      const auto got =
          run(fill + "ldmatrix.sync.aligned.m8n8.x4" + (trans ? ".trans" : "") +
                  ".shared.b16 {%r0, %r1, %r2, %r3}, [%r10];\nst.global.u32 [%out], %r" + std::to_string(matrix) + ";",
              32, shared);
      for (std::uint32_t l = 0; l < 32; ++l) {
        auto element = [&](std::uint32_t row, std::uint32_t column) {
          return matrix * 64 + (trans ? column * 8 + row : row * 8 + column);
        };
        EXPECT_EQ(got[l], element(l / 4, l % 4 * 2) | element(l / 4, l % 4 * 2 + 1) << 16) << trans << matrix << l;
      }
    }
  }
}

TEST(PtxWarps, CallsAreExpanded) {
  const std::string function =
      ".func (.param .b32 result) twice(.param .b32 x)\n{\n.reg .b32 %a;\n.reg .pred %q;\nld.param.b32 %a, "
      "[x];\nsetp.gt.u32 %q, %a, 5;\n@%q bra BIG;\n"
      "shl.b32 %a, %a, 1;\nst.param.b32 [result], %a;\nret;\nBIG:\nmov.u32 %a, 99;\nst.param.b32 [result], "
      "%a;\nret;\n}\n";
  const std::string call =
      "{\n.param .b32 p;\n.param .b32 q;\nst.param.b32 [p], %l;\ncall.uni (q), twice, (p);\nld.param.b32 %r0, "
      "[q];\n}\n";
  const auto got = run(call + call + "st.global.u32 [%out], %r0;", 32, function);
  for (std::uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l > 5 ? 99 : 2 * l);
}

TEST(PtxWarps, VariablesOfTheModule) {
  const auto got =
      run("mov.u64 %x1, table;\nmul.wide.u32 %x2, %l, 4;\nadd.s64 %x1, %x1, %x2;\nsetp.lt.u32 %p0, %l, 4;\nmov.u32 "
          "%r0, 0;\n@%p0 ld.global.u32 %r0, [%x1];\nst.global.u32 [%out], %r0;",
          32, ".global .align 4 .b32 table[4] = {10, 20, 30};\n");
  EXPECT_EQ(got[0], 10u);
  EXPECT_EQ(got[2], 30u);
  EXPECT_EQ(got[3], 0u);
}

TEST(PtxWarps, ResultsDoNotDependOnThreadsOrOrder) {
  Machine m(
      warp_kernel("mov.u32 %r0, %ctaid.x;\nmad.lo.u32 %r1, %r0, 64, %t;\nmul.wide.u32 %x1, %r1, 4;\nadd.s64 %out, %in, "
                  "%x1;\nld.global.u32 %r2, [%out];\nmad.lo.u32 %r2, %r2, 3, %r1;\nst.global.u32 [%out], %r2;"));
  std::vector<Words> results;
  for (const unsigned threads : {1, 2, 4}) {
    for (const auto order : {gsi::BlockOrder::kForward, gsi::BlockOrder::kBackward, gsi::BlockOrder::kSeeded}) {
      m.launch.threads = threads;
      m.launch.order = order;
      const auto data = m.buffer(Words(64 * 100, 5));
      EXPECT_EQ(m.error_of("k", {100}, {64}, {data, data}), "");
      results.push_back(m.read<std::uint32_t>(data, 6400));
      EXPECT_EQ(results.back(), results.front());
    }
  }
}

} // namespace triax::test
