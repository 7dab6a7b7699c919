/* Feeds every kernel of kernels.c, which is included here, under the sanitizers: see sanitize.py.
 *
 *     sanitize SEED ROUNDS
 *
 * Each array has exactly the size that compiled.py gives it, and lies at the end of a page behind
 * which nothing may be read or written, at the beginning of one, or between the red zones of the
 * address sanitizer (which does not see loads into wide registers by hand). Empty arrays are NULL,
 * as torch's are. The results are compared with plain loops. At the end the calls are counted. */

#define _GNU_SOURCE
#include "kernels.c"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- chance ------------------------------------------------------------------------------------ */

static uint64_t state;

static uint64_t chance(void)
{
    return mixed(state += 0x9E3779B97F4A7C15u);
}

static int64_t below(int64_t bound)
{
    return bound > 0 ? (int64_t)(chance() % (uint64_t)bound) : 0;
}

static double uniform(void)
{
    return (double)(chance() >> 11) / 9007199254740992.0;
}

/* A number; one in so many is extreme. */
static double number(int64_t rarely)
{
    static const double extreme[] = {0.0,      -0.0,    4.9e-324, -4.9e-324, 1e-310,   1e308,
                                     -1e308,   INFINITY, -INFINITY, NAN,      1e-45,    3e38};
    if (rarely && below(rarely) == 0)
        return extreme[below(sizeof extreme / sizeof *extreme)];
    return 0.5 + uniform();
}

/* ---- memory ------------------------------------------------------------------------------------ */

typedef struct {
    void *at, *whole;
    size_t mapped;
} Block;

enum { MOST_BLOCKS = 64 };
static Block blocks[MOST_BLOCKS];
static int used;

static void *room(size_t bytes)
{
    if (used == MOST_BLOCKS)
        abort();
    if (bytes == 0)
        return NULL;
    Block *block = &blocks[used++];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    int way = (int)below(3);
    if (way == 0) {
        *block = (Block){malloc(bytes), NULL, 0};
        if (!block->at)
            abort();
        memset(block->at, 0xA5, bytes);
        return block->at;
    }
    block->mapped = (pages + 2) * page;
    block->whole = mmap(NULL, block->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *inside = (char *)block->whole + page;
    if (block->whole == MAP_FAILED || mprotect(inside, pages * page, PROT_READ | PROT_WRITE))
        abort();
    block->at = way == 1 ? inside + pages * page - bytes : inside;
    memset(block->at, 0xA5, bytes);
    return block->at;
}

static void free_all(void)
{
    while (used) {
        Block *block = &blocks[--used];
        if (block->mapped)
            munmap(block->whole, block->mapped);
        else
            free(block->at);
    }
}

/* ---- what is called: to be changed with the kernels -------------------------------------------- */

enum { PRODUCT, INSPECT, MOVE, ROOTS, WIDE_PRODUCT, SMOOTHING_STEP, KERNELS };
static const char *const names[KERNELS] = {"rawls_product", "rawls_inspect", "rawls_move",
                                           "rawls_roots", "rawls_wide_product",
                                           "rawls_smoothing_step"};
static long calls[KERNELS], refused;
static int threads;

typedef struct {
    int64_t rows, entries;
    int32_t *starts, *column;
    int kind;
    void *values;
} Matrix;

static double call_product(const Matrix *m, int64_t length, const double *x, const double *own,
                           int loops, double *y)
{
    double *work = room((size_t)(m->entries / rawls_sizes[0] + 1) * sizeof(double));
    calls[PRODUCT]++;
    return rawls_product(m->rows, m->starts, m->column, m->kind, m->values, length, x, own, loops,
                         y, work, threads);
}

static int call_inspect(const Matrix *m, double *diagonal, Inspection *found)
{
    calls[INSPECT]++;
    return rawls_inspect(m->rows, m->starts, m->column, m->kind, m->values, m->entries, chance(),
                         diagonal, found, threads);
}

static double *call_move(int64_t first, int64_t last, int64_t size, const double *at,
                         const double *before, double *to, const double *p, const double *mp,
                         double *new_p, double t, double s, double constant, double factor,
                         const double *diagonal)
{
    size_t sums = (size_t)rawls_sizes[2];
    double *work = room((size_t)((last - first) / rawls_sizes[1] + 1) * sums * sizeof(double));
    calls[MOVE]++;
    rawls_move(first, last, size, at, before, to, p, mp, new_p, t, s, constant, factor, diagonal,
               (Sums *)work, threads);
    return work;
}

static void call_roots(int64_t nodes, const double *sums, const double *diagonal, double half,
                       double *x)
{
    calls[ROOTS]++;
    rawls_roots(nodes, sums, diagonal, half, x, threads);
}

static void call_wide_product(const Matrix *m, int64_t width, const void *from, void *to)
{
    calls[WIDE_PRODUCT]++;
    rawls_wide_product(m->rows, m->starts, m->column, m->kind, m->values, width, from, to, threads);
}

static void call_smoothing_step(int64_t rows, const int64_t *starts, const int32_t *column,
                                int kind, const void *values, int64_t width, const void *from,
                                const void *own, const void *factor, const void *added, void *to)
{
    calls[SMOOTHING_STEP]++;
    rawls_smoothing_step(rows, starts, column, kind, values, width, from, own, factor, added, to,
                         threads);
}

/* ---- what is compared -------------------------------------------------------------------------- */

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "wrong: %s\n", what);
        exit(3);
    }
}

/* Equal up to rounding of sums of so large parts; anything is right for what is no finite number,
 * as long as it is none either. */
static int near(double found, long double expected, long double parts, double rounding)
{
    if (!isfinite((double)expected) || !isfinite((double)parts))
        return 1;
    return fabsl(found - expected) <= rounding * parts + 1e-300L;
}

static double value_at(const Matrix *m, int64_t at)
{
    return entry(m->kind, m->values, at);
}

/* ---- matrices ---------------------------------------------------------------------------------- */

static int by_size(const void *one, const void *other)
{
    int32_t a = *(const int32_t *)one, b = *(const int32_t *)other;
    return (a > b) - (a < b);
}

/* Numbers around which loops change: registers, pieces, nothing. */
static int64_t edge(int64_t most)
{
    static const int64_t edges[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, PIECE_NODES,
                                    2 * PIECE_NODES, PIECE_ENTRIES, 2 * PIECE_ENTRIES};
    int64_t found = edges[below(sizeof edges / sizeof *edges)] + below(3) - 1;
    return found < 0 ? 0 : found > most ? below(most + 1) : found;
}

/* A symmetric matrix of ones where `symmetric`; else rows of any length. Columns are sorted. */
static Matrix matrix_of(int symmetric)
{
    Matrix m = {.rows = edge(5000), .kind = (int)below(3)};
    int form = (int)below(5);
    int64_t most = form == 0 ? 0 : edge(70000), width = m.rows;
    int64_t *length = calloc((size_t)m.rows + 1, sizeof *length);
    int32_t *partner = calloc((size_t)m.rows + 1, sizeof *partner);
    if (!length || !partner)
        abort();
    if (symmetric) { /* every node with at most one other, or with itself */
        for (int64_t row = 0; row < m.rows; row++)
            partner[row] = (int32_t)row, length[row] = below(4) > 0;
        for (int64_t row = 0; row + 1 < m.rows; row += 2 + below(3))
            partner[row] = (int32_t)row + 1, partner[row + 1] = (int32_t)row,
            length[row] = length[row + 1] = 1;
    } else if (m.rows) {
        int64_t left = most > m.rows * width ? m.rows * width : most;
        int64_t hub = form == 1 ? below(m.rows) : form == 2 ? m.rows - 1 : -1;
        if (hub >= 0) {
            length[hub] = left < width ? left : width;
            left = form == 1 ? left - length[hub] : 0;
        }
        for (int tries = 0; left > 0 && tries < 400000; tries++) {
            int64_t row = below(m.rows);
            if (length[row] < width)
                length[row]++, left--;
        }
    }
    m.starts = room((size_t)(m.rows + 1) * sizeof(int32_t));
    m.starts[0] = 0;
    for (int64_t row = 0; row < m.rows; row++)
        m.starts[row + 1] = m.starts[row] + (int32_t)length[row];
    m.entries = m.starts[m.rows];
    m.column = room((size_t)m.entries * sizeof(int32_t));
    for (int64_t row = 0; row < m.rows; row++) {
        int32_t *own = m.column ? m.column + m.starts[row] : NULL;
        int64_t first = below(width - length[row] + 1);
        for (int64_t k = 0; k < length[row]; k++) {
            if (symmetric)
                own[k] = partner[row];
            else if (2 * length[row] > width)
                own[k] = (int32_t)(first + k);
            else
                own[k] = (int32_t)below(width);
        }
        if (length[row] > 1)
            qsort(own, (size_t)length[row], sizeof *own, by_size);
    }
    free(length), free(partner);
    int64_t rarely = below(3) ? 0 : 1 + below(100), ones = below(3) == 0;
    size_t size = m.kind == FLOAT32 ? sizeof(float) : sizeof(double);
    m.values = m.kind == ONES ? NULL : room((size_t)m.entries * size);
    for (int64_t at = 0; m.values && at < m.entries; at++) {
        double value = symmetric || (ones && at % 40000 < 39000) ? 1 : number(rarely);
        if (m.kind == FLOAT32)
            ((float *)m.values)[at] = (float)value;
        else
            ((double *)m.values)[at] = value;
    }
    return m;
}

static int is_sound(const Matrix *m, int64_t entries)
{
    if (m->starts[0] != 0 || m->starts[m->rows] != m->entries || entries != m->entries)
        return 0;
    for (int64_t row = 0; row < m->rows; row++)
        if (m->starts[row + 1] < m->starts[row])
            return 0;
    for (int64_t at = 0; at < m->entries; at++)
        if (m->column[at] < 0 || m->column[at] >= m->rows)
            return 0;
    return 1;
}

/* ---- one kernel each --------------------------------------------------------------------------- */

static double *vector(int64_t length, int64_t rarely)
{
    double *made = room((size_t)length * sizeof(double));
    for (int64_t i = 0; i < length; i++)
        made[i] = number(rarely);
    return made;
}

static void try_product(void)
{
    Matrix m = matrix_of(0);
    int64_t rarely = below(3) ? 0 : 1 + below(50);
    double *x = vector(m.rows, rarely), *y = room((size_t)m.rows * sizeof(double));
    int loops = (int)below(2);
    double form = call_product(&m, m.rows, x, x, loops, y);
    long double total = 0, parts = 0;
    for (int64_t row = 0; row < m.rows; row++) {
        long double sum = loops ? x[row] : 0, size = loops ? fabs(x[row]) : 0;
        for (int64_t at = m.starts[row]; at < m.starts[row + 1]; at++) {
            sum += (long double)x[m.column[at]] * value_at(&m, at);
            size += fabsl((long double)x[m.column[at]] * value_at(&m, at));
        }
        require(near(y[row], sum, size, 1e-10), "a row of rawls_product");
        total += x[row] * sum, parts += fabsl(x[row]) * size;
    }
    require(near(form, total, parts, 1e-10), "the sum of rawls_product");
}

static void try_inspect(void)
{
    int symmetric = (int)below(3) == 0;
    Matrix m = matrix_of(symmetric);
    double *diagonal = room((size_t)m.rows * sizeof(double));
    Inspection found;
    require(call_inspect(&m, diagonal, &found), "rawls_inspect refuses a sound matrix");
    require(!symmetric || found.asymmetry == 0, "rawls_inspect finds no symmetry");
    double low = INFINITY, high = -INFINITY;
    int none = 0;
    for (int64_t at = 0; at < m.entries; at++) {
        double value = value_at(&m, at);
        low = fmin(low, value), high = fmax(high, value), none |= isnan(value);
    }
    if (none)
        require(isnan(found.low) && isnan(found.high), "rawls_inspect overlooks a nan");
    else if (m.entries && m.kind != ONES)
        require(found.low == low && found.high == high, "the ends of rawls_inspect");
    for (int64_t row = 0; row < m.rows; row++) {
        double stored = 0;
        for (int64_t at = m.starts[row + 1] - 1; at >= m.starts[row]; at--)
            stored = m.column[at] == row ? value_at(&m, at) : stored;
        require(diagonal[row] == stored || (isnan(stored) && isnan(diagonal[row])),
                "the diagonal of rawls_inspect");
    }
}

static int32_t plus(int32_t start, int64_t more)
{
    return (int32_t)(uint32_t)((uint64_t)start + (uint64_t)more);
}

static void try_damaged(void)
{
    static const int64_t wrong[] = {-1, INT32_MAX, INT32_MIN, 0, 1, PIECE_ENTRIES};
    Matrix m = matrix_of(0);
    int64_t entries = m.entries;
    for (int64_t count = 1 + below(3); count; count--) {
        int32_t any = (int32_t)wrong[below(sizeof wrong / sizeof *wrong)];
        switch (below(5)) {
        case 0:
            m.starts[below(m.rows + 1)] = any;
            break;
        case 1:
            m.starts[m.rows] = below(2) ? any : plus(m.starts[m.rows], below(3) - 1);
            break;
        case 2:
            if (m.entries)
                m.column[below(2) ? below(entries) : entries - 1] = any;
            break;
        case 3:
            if (m.entries)
                m.column[below(entries)] = (int32_t)m.rows;
            break;
        default: /* rows that fall */
            if (m.rows > 1) {
                int64_t row = 1 + below(m.rows - 1);
                m.starts[row] = plus(m.starts[row], below(2 * PIECE_ENTRIES));
            }
        }
    }
    double *diagonal = room((size_t)m.rows * sizeof(double));
    Inspection found;
    int sound = is_sound(&m, entries);
    require(call_inspect(&m, diagonal, &found) == sound, "rawls_inspect lets a damaged matrix pass");
    refused += !sound;
    /* Sizes that the arrays do not have. */
    Matrix other = m;
    other.entries = below(2) ? INT64_MAX : -1 - below(5);
    require(!call_inspect(&other, diagonal, &found), "rawls_inspect believes a wrong size");
    refused++;
}

static void try_move(void)
{
    int64_t size = edge(9000), first = below(size + 1), last = first + below(size - first + 1);
    if (below(2))
        first = 0, last = size;
    int64_t rarely = below(3) ? 0 : 1 + below(50);
    double *at = vector(2 * size, rarely), *before = vector(2 * size, rarely);
    double *to = below(2) ? before : vector(2 * size, 0);
    double *p = vector(size, rarely), *mp = vector(size, rarely), *new_p = vector(size, 0);
    double *diagonal = below(2) ? vector(size, 0) : NULL;
    double t = uniform() - 0.5, s = below(2) ? uniform() - 0.5 : 0, factor = (double)below(2);
    double constant = below(4) ? 2 : INFINITY;
    double *x = malloc((size_t)size * sizeof *x + 1), *y = malloc((size_t)size * sizeof *y + 1);
    if (!x || !y)
        abort();
    for (int64_t i = first; i < last; i++) {
        x[i] = at[i] + (t * p[i] + (s != 0 ? s * (at[i] - before[i]) : 0));
        y[i] = at[size + i] + (t * mp[i] + (s != 0 ? s * (at[size + i] - before[size + i]) : 0));
    }
    double *sums = call_move(first, last, size, at, before, to, p, mp, new_p, t, s, constant,
                             factor, diagonal);
    double least = INFINITY;
    for (int64_t i = first; i < last; i++) {
        require(near(to[i], x[i], 4 + fabsl(x[i]), 1e-12), "x of rawls_move");
        require(near(to[size + i], y[i], 4 + fabsl(y[i]), 1e-12), "y of rawls_move");
        least = to[i] < least ? to[i] : least;
    }
    require(rarely || sums[8] == least, "the least x of rawls_move");
    free(x), free(y);
}

static void try_roots(void)
{
    int64_t nodes = edge(9000);
    double *sums = vector(nodes, below(3) ? 0 : 20), *diagonal = vector(nodes, 0);
    double *x = room((size_t)nodes * sizeof(double)), half = uniform();
    call_roots(nodes, sums, diagonal, half, x);
    for (int64_t i = 0; i < nodes; i++) {
        long double linear = sums[i] > diagonal[i] ? half * (long double)(sums[i] - diagonal[i]) : 0;
        long double left = diagonal[i] * (long double)x[i] * x[i] + 2 * linear * x[i];
        if (isfinite(sums[i]) && fabs(sums[i]) < 1e100)
            require(near((double)left, 1, 1 + linear * x[i], 1e-10), "a root of rawls_roots");
    }
}

static void try_wide_product(void)
{
    static const int64_t widths[] = {16, 17, 31, 32, 33, 63, 64, 65, 80, 127, 128, 129};
    Matrix m = matrix_of(0);
    if (m.kind == ONES)
        return;
    int64_t width = widths[below(sizeof widths / sizeof *widths)], all = m.rows * width;
    if (m.kind == FLOAT64 && below(2))
        width = 8 + below(9), all = m.rows * width;
    size_t size = m.kind == FLOAT32 ? sizeof(float) : sizeof(double);
    void *from = room((size_t)all * size), *to = room((size_t)all * size);
    for (int64_t i = 0; i < all; i++) {
        if (m.kind == FLOAT32)
            ((float *)from)[i] = (float)uniform();
        else
            ((double *)from)[i] = uniform();
    }
    call_wide_product(&m, width, from, to);
    for (int64_t tries = 0; tries < 200 && all; tries++) {
        int64_t row = below(m.rows), at = below(width);
        long double sum = 0, parts = 0;
        for (int64_t k = m.starts[row]; k < m.starts[row + 1]; k++) {
            int64_t place = m.column[k] * width + at;
            long double part = (long double)value_at(&m, k) * entry(m.kind, from, place);
            sum += part, parts += fabsl(part);
        }
        double rounding = m.kind == FLOAT32 ? 1e-3 : 1e-10;
        if (parts < (m.kind == FLOAT32 ? 1e30L : 1e300L))
            require(near(entry(m.kind, to, row * width + at), sum, parts + 1e-30L, rounding),
                    "an entry of rawls_wide_product");
    }
}

/* Numbers of that type between 0 and 1. */
static void *dense(int kind, int64_t count)
{
    void *all = room((size_t)count * (kind == FLOAT32 ? sizeof(float) : sizeof(double)));
    for (int64_t i = 0; i < count; i++) {
        if (kind == FLOAT32)
            ((float *)all)[i] = (float)uniform();
        else
            ((double *)all)[i] = uniform();
    }
    return all;
}

/* Some rows of a matrix, whose row starts are long and begin anywhere. */
static void try_smoothing_step(void)
{
    Matrix m = matrix_of(0);
    int kind = m.kind == ONES ? (below(2) ? FLOAT32 : FLOAT64) : m.kind;
    int64_t width = (1 + below(9)) * (kind == FLOAT32 ? 16 : 8);
    int64_t first = below(m.rows), rows = m.rows ? 1 + below(m.rows - first) : 0;
    int64_t base = m.starts[first], entries = m.starts[first + rows] - base;
    int64_t offset = (int64_t)(chance() >> 2), *starts = room((size_t)(rows + 1) * 8);
    size_t size = kind == FLOAT32 ? sizeof(float) : sizeof(double);
    for (int64_t row = 0; row <= rows; row++)
        starts[row] = m.starts[first + row] - base + offset;
    int32_t *column = room((size_t)entries * sizeof(int32_t));
    void *values = m.kind == ONES ? NULL : room((size_t)entries * size);
    if (entries)
        memcpy(column, m.column + base, (size_t)entries * sizeof(int32_t));
    if (values)
        memcpy(values, (char *)m.values + (size_t)base * size, (size_t)entries * size);
    else if (m.kind != ONES)
        values = column; /* of no entries: not NULL, which stands for ones */
    void *from = dense(kind, m.rows * width), *factor = dense(kind, rows);
    void *added = dense(kind, rows * width), *to = room((size_t)(rows * width) * size);
    const char *own = (const char *)from + (size_t)(first * width) * size;
    call_smoothing_step(rows, starts, column, kind, values, width, from, own, factor, added, to);
    for (int64_t tries = 0; tries < 200 && rows; tries++) {
        int64_t row = below(rows), at = below(width), place = row * width + at;
        long double sum = entry(kind, own, place), parts = sum;
        for (int64_t k = starts[row] - offset; k < starts[row + 1] - offset; k++) {
            long double value = m.kind == ONES ? 1 : entry(kind, values, k);
            long double part = value * entry(kind, from, column[k] * width + at);
            sum += part, parts += fabsl(part);
        }
        sum = entry(kind, factor, row) * sum + entry(kind, added, place);
        double rounding = kind == FLOAT32 ? 1e-3 : 1e-10;
        if (parts < (kind == FLOAT32 ? 1e30L : 1e300L))
            require(near(entry(kind, to, place), sum, parts + 1, rounding),
                    "an entry of rawls_smoothing_step");
    }
}

int main(int count, char **arguments)
{
    static void (*const tries[])(void) = {try_product,      try_inspect, try_damaged,       try_move,
                                          try_wide_product, try_roots,   try_smoothing_step};
    static const int numbers[] = {1, 2, 4};
    state = count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
    long rounds = count > 2 ? strtol(arguments[2], NULL, 10) : 100;
    for (long round = 0; round < rounds; round++) {
        threads = numbers[round % 3];
        for (size_t kernel = 0; kernel < sizeof tries / sizeof *tries; kernel++) {
            tries[kernel]();
            free_all();
        }
    }
    for (int kernel = 0; kernel < KERNELS; kernel++)
        printf("%s %ld\n", names[kernel], calls[kernel]);
    printf("refused %ld\navx512 %d\n", refused, HAS_AVX512 ? 1 : 0);
    return 0;
}
