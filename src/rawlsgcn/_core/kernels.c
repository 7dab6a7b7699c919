/* The loops over matrices and vectors in which balancing and training spend their time.
 *
 * They compute what balancing/vector_updates.py, sparse_matrix.py and symmetry.py compute with
 * numpy and torch, and what _core/sparse.py and training/smoothed do with torch, and replace them on
 * the CPU where the package was installed with a C compiler (hatch_build.py compiles this file,
 * kernels.py calls it). Work is cut into pieces that do not depend on the number of threads, and
 * sums are made in the order of the pieces, so the result does not depend on it either.
 */

#include <stddef.h>
#include <stdint.h>

/* One more form of a function for processors with wider registers, chosen when it is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define FOR_ANY_WIDTH __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define FOR_ANY_WIDTH
#endif

/* Registers of 512 bits, by intrinsics, for the one loop that gains more than 15 % by them: see
 * multiply_gathering(). */
#ifdef __x86_64__
#include <immintrin.h>
#define WIDE __attribute__((target("avx512f,avx512vl")))
#define HAS_AVX512 (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
/* Whether its gather instruction is fast; the tests compile with both answers. */
#ifndef GATHERS_WELL
#define GATHERS_WELL __builtin_cpu_is("intel")
#endif

/* The first of eight places, as many as are left. */
static inline __mmask8 mask_of(int64_t left)
{
    return left < 8 ? (__mmask8)((1u << left) - 1) : 0xFF;
}
#else
#define HAS_AVX512 0
#endif

/* Entries of a matrix and nodes of a vector in a piece: tens of microseconds of work. */
enum { PIECE_ENTRIES = 1 << 15, PIECE_NODES = 1 << 11 };
/* Numbers of a vector that a core's own cache holds. */
enum { SHORT_VECTOR = 1 << 17 };
/* What the entries are. */
enum { ONES, FLOAT32, FLOAT64 };

/* The first row that starts at this entry or behind. */
static int64_t row_at(const int32_t *starts, int64_t rows, int64_t entry)
{
    int64_t low = 0, high = rows;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (starts[middle] < entry)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t pieces_of(int64_t whole, int64_t piece)
{
    return whole > piece ? (whole + piece - 1) / piece : 1;
}

/* The rows of one piece: from *first to before *last, about `entries` entries. */
static void rows_of(int64_t entries, const int32_t *starts, int64_t rows, int64_t piece,
                    int64_t pieces, int64_t *first, int64_t *last)
{
    *first = piece ? row_at(starts, rows, piece * entries) : 0;
    *last = piece + 1 < pieces ? row_at(starts, rows, (piece + 1) * entries) : rows;
}

static void rows_of_piece(const int32_t *starts, int64_t rows, int64_t piece, int64_t pieces,
                          int64_t *first, int64_t *last)
{
    rows_of(PIECE_ENTRIES, starts, rows, piece, pieces, first, last);
}

/* ---- y = M x ---------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) double entry(int kind, const void *values, int64_t at)
{
    if (kind == FLOAT32)
        return ((const float *)values)[at];
    return kind == FLOAT64 ? ((const double *)values)[at] : 1.0;
}

static inline __attribute__((always_inline)) double multiply(
    int kind, int64_t first, int64_t last, const int32_t *restrict starts,
    const int32_t *restrict column, const void *values, const double *restrict x,
    const double *own, int loops, double *restrict y)
{
    double total = 0;
    for (int64_t row = first; row < last; row++) {
        int64_t at = starts[row], end = starts[row + 1];
        /* Two sums in turn, as an addition takes longer than it takes to begin the next. */
        double even = 0, odd = 0;
        for (; at + 2 <= end; at += 2) {
            even += x[column[at]] * entry(kind, values, at);
            odd += x[column[at + 1]] * entry(kind, values, at + 1);
        }
        if (at < end)
            even += x[column[at]] * entry(kind, values, at);
        y[row] = even + odd + (loops ? own[row] : 0);
        total += own[row] * y[row];
    }
    return total;
}

#ifdef __x86_64__
/* The same for a matrix of ones, eight numbers at once. Intel's processors gather faster than they
 * load, as long as x is in a core's cache: balancing takes 1.13 to 1.46 times as long without it
 * (benchmarks/README.md). On AMD's it is slower. */
WIDE static double multiply_gathering(
    int64_t first, int64_t last, const int32_t *restrict starts, const int32_t *restrict column,
    const double *restrict x, const double *own, int loops, double *restrict y)
{
    double total = 0;
    for (int64_t row = first; row < last; row++) {
        int64_t at = starts[row], end = starts[row + 1];
        __m512d sum = _mm512_setzero_pd();
        for (; at < end; at += 8) {
            __mmask8 inside = mask_of(end - at);
            __m256i nodes = _mm256_maskz_loadu_epi32(inside, column + at);
            sum = _mm512_add_pd(
                sum, _mm512_mask_i32gather_pd(_mm512_setzero_pd(), inside, nodes, x, 8));
        }
        y[row] = _mm512_reduce_add_pd(sum) + (loops ? own[row] : 0);
        total += own[row] * y[row];
    }
    return total;
}

static int gathers(int kind, int64_t length)
{
    return kind == ONES && length <= SHORT_VECTOR && HAS_AVX512 && GATHERS_WELL;
}
#else
#define gathers(kind, length) 0
#define multiply_gathering(...) 0
#endif

/* y = M x, or (M + I) x with loops; the result is x^T y. `own` is x itself, or where the numbers of
 * these rows begin in it. `work` has room for one number a piece. */
double rawls_product(int64_t rows, const int32_t *starts, const int32_t *column, int kind,
                     const void *values, int64_t length, const double *x, const double *own,
                     int loops, double *y, double *work, int threads)
{
    int64_t pieces = pieces_of(starts[rows], PIECE_ENTRIES);
    int gathering = gathers(kind, length);
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1 && pieces > 1)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t first, last;
        rows_of_piece(starts, rows, piece, pieces, &first, &last);
        if (gathering)
            work[piece] = multiply_gathering(first, last, starts, column, x, own, loops, y);
        else if (kind == ONES)
            work[piece] = multiply(ONES, first, last, starts, column, values, x, own, loops, y);
        else if (kind == FLOAT32)
            work[piece] = multiply(FLOAT32, first, last, starts, column, values, x, own, loops, y);
        else
            work[piece] = multiply(FLOAT64, first, last, starts, column, values, x, own, loops, y);
    }
    double total = 0;
    for (int64_t piece = 0; piece < pieces; piece++)
        total += work[piece];
    return total;
}

/* ---- one step of the descent ------------------------------------------------------------------ */

/* What a move adds up: products of u, v and e, then (M d)^T p, and the ends of e, x and v. */
typedef struct {
    double uu, uv, ue, vv, ve, dp, high, low, least, longest;
} Sums;

/* By which kernels.py allocates memory: the entries and nodes of a piece, the numbers of a Sums. */
const int64_t rawls_sizes[] = {PIECE_ENTRIES, PIECE_NODES, sizeof(Sums) / sizeof(double)};

/* The vectors of one piece: what is read, and what is written. x and y may be written to where
 * those before lay; no other two overlap. */
typedef struct {
    const double *x, *y, *x_before, *y_before, *p, *mp, *diagonal;
    double *new_x, *new_y, *new_p;
} Vectors;

/* See Descent: x and y move by t p + s d and its product, where d is the last displacement; then
 * the next step p = x u is proposed. */
static inline __attribute__((always_inline)) void move_nodes(int has_last, int has_diagonal,
                                                             int64_t nodes, Vectors at, double t,
                                                             double s, double constant,
                                                             double factor, Sums *out)
{
    double uu = 0, uv = 0, ue = 0, vv = 0, ve = 0, dp = 0;
    double high = -__builtin_inf(), low = -high, least = -high, longest = high;
#pragma omp simd reduction(+ : uu, uv, ue, vv, ve, dp) reduction(max : high, longest)              \
    reduction(min : low, least)
    for (int64_t i = 0; i < nodes; i++) {
        double by = t * at.p[i] + (has_last ? s * (at.x[i] - at.x_before[i]) : 0);
        double image = t * at.mp[i] + (has_last ? s * (at.y[i] - at.y_before[i]) : 0);
        double x = at.x[i] + by, y = at.y[i] + image;
        double e = x * y - 1;
        double u = e / ((constant + e) * (1 + (has_diagonal ? at.diagonal[i] : factor) * x * x));
        double v = by / x, p = x * u;
        at.new_x[i] = x, at.new_y[i] = y, at.new_p[i] = p;
        uu += u * u, uv += u * v, ue += u * e, vv += v * v, ve += v * e, dp += image * p;
        high = e > high ? e : high, low = e < low ? e : low;
        least = x < least ? x : least, longest = v > longest ? v : longest;
    }
    *out = (Sums){uu, uv, ue, vv, ve, dp, high, low, least, longest};
}

FOR_ANY_WIDTH static void move_piece(int64_t nodes, Vectors at, double t, double s,
                                     double constant, double factor, Sums *out)
{
    /* Without a share of it the last displacement is not looked at: it may be none. */
    if (s != 0 && at.diagonal)
        move_nodes(1, 1, nodes, at, t, s, constant, factor, out);
    else if (s != 0)
        move_nodes(1, 0, nodes, at, t, s, constant, factor, out);
    else if (at.diagonal)
        move_nodes(0, 1, nodes, at, t, s, constant, factor, out);
    else
        move_nodes(0, 0, nodes, at, t, s, constant, factor, out);
}

/* at, before, to: points, an x of `stride` nodes and the y behind it, of which the nodes `first` to
 * `last` are moved. u = e / ((constant + e) (1 + m x^2)), where m is the diagonal or, without one,
 * `factor`. `work` has room for one Sums of every piece; the sums of all end in the first. */
void rawls_move(int64_t first, int64_t last, int64_t stride, const double *at,
                const double *before, double *to, const double *p, const double *mp,
                double *new_p, double t, double s, double constant, double factor,
                const double *diagonal, Sums *work, int threads)
{
    int64_t pieces = pieces_of(last - first, PIECE_NODES);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && pieces > 1)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t a = first + piece * PIECE_NODES, b = a + stride;
        int64_t nodes = last - a < PIECE_NODES ? last - a : PIECE_NODES;
        Vectors here = {at + a, at + b, before + a, before + b, p + a, mp + a,
                        diagonal ? diagonal + a : NULL, to + a, to + b, new_p + a};
        move_piece(nodes, here, t, s, constant, factor, &work[piece]);
    }
    for (int64_t piece = 1; piece < pieces; piece++) {
        const Sums *one = &work[piece];
        work->uu += one->uu, work->uv += one->uv, work->ue += one->ue;
        work->vv += one->vv, work->ve += one->ve, work->dp += one->dp;
        work->high = one->high > work->high ? one->high : work->high;
        work->low = one->low < work->low ? one->low : work->low;
        work->least = one->least < work->least ? one->least : work->least;
        work->longest = one->longest > work->longest ? one->longest : work->longest;
    }
}

/* ---- where the descent begins ------------------------------------------------------------------ */

FOR_ANY_WIDTH static void root_piece(int64_t nodes, const double *restrict sums,
                                     const double *restrict diagonal, double half,
                                     double *restrict x)
{
    for (int64_t i = 0; i < nodes; i++) {
        double outer = sums[i] - diagonal[i], linear = outer > 0 ? half * outer : 0;
        x[i] = 1 / (linear + __builtin_sqrt(linear * linear + diagonal[i]));
    }
}

/* x with m x^2 + 2 h (sums - m) x = 1, where m is the diagonal and h = half. */
void rawls_roots(int64_t nodes, const double *sums, const double *diagonal, double half, double *x,
                 int threads)
{
    int64_t pieces = pieces_of(nodes, PIECE_NODES);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && pieces > 1)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t a = piece * PIECE_NODES, left = nodes - a;
        root_piece(left < PIECE_NODES ? left : PIECE_NODES, sums + a, diagonal + a, half, x + a);
    }
}

/* ---- what kind of matrix it is ---------------------------------------------------------------- */

/* The factors of splitmix64's finaliser. */
#define ONE_FACTOR 0xBF58476D1CE4E5B9u
#define OTHER_FACTOR 0x94D049BB133111EBu

static inline __attribute__((always_inline)) uint64_t mixed(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * ONE_FACTOR;
    bits = (bits ^ (bits >> 27)) * OTHER_FACTOR;
    return bits ^ (bits >> 31);
}

/* A random number for a node. It is computed again wherever it is needed, which takes less time
 * than to read it from memory in random order. Nothing simpler will do: numbers of which one is twice
 * another for twice the node let unsymmetric matrices pass. */
static inline __attribute__((always_inline)) uint64_t key(uint64_t seed, int64_t node)
{
    return mixed(seed + (uint64_t)node);
}

static inline __attribute__((always_inline)) uint64_t hash_of(double number)
{
    union {
        double number;
        uint64_t bits;
    } same = {number};
    return mixed(same.bits);
}

/* The share of an entry, but for its nodes; the same for all in a matrix of ones. */
static inline __attribute__((always_inline)) uint64_t share_of(int kind, const void *values,
                                                               int64_t at)
{
    return kind == ONES ? 1 : hash_of(entry(kind, values, at));
}

static inline __attribute__((always_inline)) uint64_t inspect(
    int kind, int64_t first, int64_t last, const int32_t *restrict starts,
    const int32_t *restrict column, const void *values, uint64_t seed, double *restrict diagonal)
{
    uint64_t total = 0;
    for (int64_t row = first; row < last; row++) {
        uint64_t all = 0, below = 0, smaller = 0;
        int64_t start = starts[row], end = starts[row + 1];
        int32_t own = (int32_t)row;
        for (int64_t at = start; at < end; at++) {
            uint64_t term = key(seed, column[at]) * share_of(kind, values, at);
            uint64_t left = column[at] < own;
            all += term, below += term & -left, smaller += left;
        }
        /* Columns are sorted: as many lie before the diagonal as are smaller. */
        int64_t loop = start + (int64_t)smaller;
        int stored = loop < end && column[loop] == own;
        uint64_t middle = stored ? key(seed, own) * share_of(kind, values, loop) : 0;
        total += key(seed, own) * (below - (all - below - middle));
        diagonal[row] = stored ? entry(kind, values, loop) : 0;
    }
    return total;
}

FOR_ANY_WIDTH static uint64_t inspect_rows(int kind, int64_t first, int64_t last,
                                           const int32_t *starts, const int32_t *column,
                                           const void *values, uint64_t seed, double *diagonal)
{
    if (kind == ONES)
        return inspect(ONES, first, last, starts, column, values, seed, diagonal);
    if (kind == FLOAT32)
        return inspect(FLOAT32, first, last, starts, column, values, seed, diagonal);
    return inspect(FLOAT64, first, last, starts, column, values, seed, diagonal);
}

/* Whether the rows begin one behind the other, the first at 0, and end where the entries do. */
FOR_ANY_WIDTH static int rise(int64_t rows, const int32_t *starts, int64_t entries)
{
    int fall = 0;
    for (int64_t row = 0; row < rows; row++)
        fall |= starts[row + 1] < starts[row];
    return !fall && starts[0] == 0 && starts[rows] == entries;
}

/* Whether all of these are numbers of rows; a negative one is a large one here. */
FOR_ANY_WIDTH static int are_rows(int64_t count, const int32_t *column, int64_t rows)
{
    uint32_t largest = 0;
    for (int64_t at = 0; at < count; at++)
        largest = (uint32_t)column[at] > largest ? (uint32_t)column[at] : largest;
    return count == 0 || largest < rows;
}

/* The least and the largest of numbers; both no number where one of them is none. */
typedef struct {
    double low, high;
} Ends;

static inline __attribute__((always_inline)) Ends ends(int kind, int64_t start, int64_t end,
                                                       const void *values)
{
    double high = -__builtin_inf(), low = -high;
    int64_t none = 0;
#pragma omp simd reduction(max : high) reduction(min : low) reduction(+ : none)
    for (int64_t at = start; at < end; at++) {
        double value = entry(kind, values, at);
        high = value > high ? value : high, low = value < low ? value : low, none += value != value;
    }
    return none ? (Ends){__builtin_nan(""), __builtin_nan("")} : (Ends){low, high};
}

FOR_ANY_WIDTH static Ends ends_of(int kind, int64_t start, int64_t end, const void *values)
{
    if (kind == ONES)
        return (Ends){1, 1};
    return kind == FLOAT32 ? ends(FLOAT32, start, end, values) : ends(FLOAT64, start, end, values);
}

/* The result of an inspection, except the diagonal. */
typedef struct {
    /* The sum modulo 2^64 of k_i k_j h(m_ij) with the sign of i - j over all entries: zero for a
     * symmetric matrix, and hardly ever for another (see balancing/symmetry.py). */
    uint64_t asymmetry;
    /* The least and the largest entry; no numbers where an entry is none. */
    double low, high;
} Inspection;

/* All that has to be known of a matrix of so many entries, in one sweep: its Inspection, and the
 * stored diagonal, zero where no entry is stored. The result is whether it names nothing outside
 * itself; nothing else is right where it does. */
int rawls_inspect(int64_t rows, const int32_t *starts, const int32_t *column, int kind,
                  const void *values, int64_t entries, uint64_t seed, double *diagonal,
                  Inspection *out, int threads)
{
    if (!rise(rows, starts, entries))
        return 0;
    int64_t pieces = pieces_of(entries, PIECE_ENTRIES);
    const uint64_t share = kind == ONES ? 1 : hash_of(1);
    uint64_t total = 0;
    int64_t outside = 0, none = 0;
    double high = -__builtin_inf(), low = -high;
#pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(max : high)              \
    reduction(min : low) reduction(+ : total, outside, none) if (threads > 1 && pieces > 1)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t first, last;
        rows_of_piece(starts, rows, piece, pieces, &first, &last);
        int64_t start = starts[first], end = starts[last];
        Ends here = ends_of(kind, start, end, values);
        outside += !are_rows(end - start, column + start, rows);
        none += here.low != here.low;
        low = here.low < low ? here.low : low, high = here.high > high ? here.high : high;
        /* A piece of ones needs no values, whatever the other pieces are. */
        if (here.low != 1 || here.high != 1)
            total += inspect_rows(kind, first, last, starts, column, values, seed, diagonal);
        else
            total += share * inspect_rows(ONES, first, last, starts, column, NULL, seed, diagonal);
    }
    *out = (Inspection){total, none ? __builtin_nan("") : low, none ? __builtin_nan("") : high};
    return !outside;
}

/* ---- C = M B, with the columns that training has ------------------------------------------------ */

/* Entries of a piece, for each of which dozens of columns are gone over. */
enum { WIDE_PIECE_ENTRIES = 1 << 11 };

/* Sixteen floats or eight doubles, wherever they lie: one wide register, or several narrow ones. */
typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef double Doubles __attribute__((vector_size(64), aligned(8), may_alias));

/* Row by row; four registers of columns at a time stay where they are while the row is added up,
 * then one. The last one ends with the row: columns that it shares with the one before are computed
 * twice. */
#define MULTIPLY_WIDE(NAME, NUMBER, VECTOR)                                                        \
    FOR_ANY_WIDTH static void NAME(int64_t first, int64_t last, const int32_t *restrict starts,    \
                                   const int32_t *restrict column, const NUMBER *restrict values,  \
                                   int64_t width, const NUMBER *restrict from,                     \
                                   NUMBER *restrict to)                                            \
    {                                                                                              \
        enum { LANES = sizeof(VECTOR) / sizeof(NUMBER) };                                          \
        for (int64_t row = first; row < last; row++) {                                             \
            int64_t start = starts[row], end = starts[row + 1], at = 0;                            \
            NUMBER *own = to + row * width;                                                        \
            for (; at + 4 * LANES <= width; at += 4 * LANES) {                                     \
                VECTOR a = {0}, b = {0}, c = {0}, d = {0};                                         \
                for (int64_t k = start; k < end; k++) {                                            \
                    const NUMBER *other = from + column[k] * width + at;                           \
                    a += values[k] * *(const VECTOR *)other;                                       \
                    b += values[k] * *(const VECTOR *)(other + LANES);                             \
                    c += values[k] * *(const VECTOR *)(other + 2 * LANES);                         \
                    d += values[k] * *(const VECTOR *)(other + 3 * LANES);                         \
                }                                                                                  \
                *(VECTOR *)(own + at) = a, *(VECTOR *)(own + at + LANES) = b;                      \
                *(VECTOR *)(own + at + 2 * LANES) = c, *(VECTOR *)(own + at + 3 * LANES) = d;      \
            }                                                                                      \
            for (; at < width; at += LANES) {                                                      \
                VECTOR a = {0};                                                                    \
                at = at + LANES > width ? width - LANES : at;                                      \
                for (int64_t k = start; k < end; k++)                                              \
                    a += values[k] * *(const VECTOR *)(from + column[k] * width + at);             \
                *(VECTOR *)(own + at) = a;                                                         \
            }                                                                                      \
        }                                                                                          \
    }

MULTIPLY_WIDE(multiply_floats, float, Floats)
MULTIPLY_WIDE(multiply_doubles, double, Doubles)

/* C = M B for matrices of `width` columns, row behind row, of the values' type, float or double;
 * a wide register of them at least, 64 bytes. */
void rawls_wide_product(int64_t rows, const int32_t *starts, const int32_t *column, int kind,
                        const void *values, int64_t width, const void *from, void *to, int threads)
{
    int64_t pieces = pieces_of(starts[rows], WIDE_PIECE_ENTRIES);
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1 && pieces > 1)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t first, last;
        rows_of(WIDE_PIECE_ENTRIES, starts, rows, piece, pieces, &first, &last);
        if (kind == FLOAT32)
            multiply_floats(first, last, starts, column, values, width, from, to);
        else
            multiply_doubles(first, last, starts, column, values, width, from, to);
    }
}

/* ---- one step of smoothing: C = diag(f) (M + I) B + T ------------------------------------------- */

/* Columns are gone over four registers at a time, all rows for each: of a wide row of B, which lies
 * anywhere in memory, the processor would otherwise fetch lines behind its end that nobody needs.
 * Lines of B are asked for so many before they are needed, into the second cache, which waits for
 * many more of them at a time than the first. */
enum { REGISTERS = 4, LINES_AHEAD = 192 };

/* The first row that starts at this entry or behind. */
static int64_t long_row_at(const int64_t *starts, int64_t rows, int64_t entry)
{
    int64_t low = 0, high = rows;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (starts[middle] < entry)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What a step reads and writes. `own` is where the rows of M begin in `from`. */
typedef struct {
    const int64_t *starts;
    const int32_t *column;
    const void *values, *from, *own, *factor, *added;
    void *to;
    int64_t width;
} Smoothing;

/* Some registers of columns, so many that they stay where they are while a row is added up: the
 * row's entries in their order, its own numbers at the end. Every column is added up alike, whatever
 * the width and whatever its place, so its bits depend on neither. */
#define SMOOTH_COLUMNS(NAME, NUMBER, VECTOR)                                                       \
    static inline __attribute__((always_inline)) void NAME##_registers(                            \
        int registers, int64_t row, int64_t at, int64_t limit, const Smoothing *s)                 \
    {                                                                                              \
        enum { LANES = sizeof(VECTOR) / sizeof(NUMBER) };                                          \
        const int32_t *restrict column = s->column;                                                \
        const NUMBER *restrict values = s->values, *restrict from = (const NUMBER *)s->from + at;  \
        const NUMBER *own = s->own, *added = s->added, factor = ((const NUMBER *)s->factor)[row];  \
        NUMBER *to = s->to;                                                                        \
        const int64_t width = s->width, ahead = 1 + LINES_AHEAD / registers;                       \
        const int64_t end = s->starts[row + 1] - s->starts[0];                                     \
        VECTOR sum[REGISTERS] = {{0}, {0}, {0}, {0}};                                              \
        for (int64_t k = s->starts[row] - s->starts[0]; k < end; k++) {                            \
            const NUMBER *other = from + column[k] * width, value = values ? values[k] : 1;        \
            int64_t next = k + ahead < limit ? k + ahead : limit - 1;                              \
            for (int i = 0; i < registers; i++)                                                    \
                __builtin_prefetch(from + column[next] * width + i * LANES, 0, 2);                 \
            for (int i = 0; i < registers; i++)                                                    \
                sum[i] += value * *(const VECTOR *)(other + i * LANES);                            \
        }                                                                                          \
        for (int i = 0; i < registers; i++) {                                                      \
            int64_t place = row * width + at + i * LANES;                                          \
            VECTOR all = sum[i] + *(const VECTOR *)(own + place);                                  \
            *(VECTOR *)(to + place) = factor * all + *(const VECTOR *)(added + place);             \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    FOR_ANY_WIDTH static void NAME(int64_t first, int64_t last, int64_t at, int64_t limit,         \
                                   const Smoothing *s)                                             \
    {                                                                                              \
        enum { LANES = sizeof(VECTOR) / sizeof(NUMBER) };                                          \
        int64_t registers = (s->width - at) / LANES;                                               \
        for (int64_t row = first; row < last; row++)                                               \
            if (registers >= REGISTERS)                                                            \
                NAME##_registers(REGISTERS, row, at, limit, s);                                    \
            else if (registers == 3)                                                               \
                NAME##_registers(3, row, at, limit, s);                                            \
            else if (registers == 2)                                                               \
                NAME##_registers(2, row, at, limit, s);                                            \
            else                                                                                   \
                NAME##_registers(1, row, at, limit, s);                                            \
    }

SMOOTH_COLUMNS(smooth_floats, float, Floats)
SMOOTH_COLUMNS(smooth_doubles, double, Doubles)

/* C = diag(f) (M + I) B + T for some rows of M: `values` are its entries, or NULL for ones, `own`
 * those rows of B, `factor` f and `added` T. Row i has the entries starts[i] to starts[i + 1], less
 * starts[0], of `column` and `values`. All numbers are float or double, as `kind` says; the width is
 * a multiple of 64 bytes. */
void rawls_smoothing_step(int64_t rows, const int64_t *starts, const int32_t *column, int kind,
                          const void *values, int64_t width, const void *from, const void *own,
                          const void *factor, const void *added, void *to, int threads)
{
    const Smoothing all = {starts, column, values, from, own, factor, added, to, width};
    const int64_t entries = starts[rows] - starts[0];
    const int64_t pieces = pieces_of(entries, WIDE_PIECE_ENTRIES);
    const int64_t columns = REGISTERS * (kind == FLOAT32 ? 16 : 8);
    const int64_t parts = (width + columns - 1) / columns * pieces;
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1 && parts > 1)
    for (int64_t part = 0; part < parts; part++) {
        int64_t at = part / pieces * columns, piece = part % pieces;
        int64_t begin = starts[0] + piece * WIDE_PIECE_ENTRIES, end = begin + WIDE_PIECE_ENTRIES;
        int64_t first = piece ? long_row_at(starts, rows, begin) : 0;
        int64_t last = piece + 1 < pieces ? long_row_at(starts, rows, end) : rows;
        if (kind == FLOAT32)
            smooth_floats(first, last, at, entries, &all);
        else
            smooth_doubles(first, last, at, entries, &all);
    }
}
