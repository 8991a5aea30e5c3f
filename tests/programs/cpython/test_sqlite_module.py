"""The sqlite3 extension module, for releases whose test package leaves CPython's own test_sqlite3 out (Debian 12).

What is shown is what depends on the loader: the module and libsqlite3 loaded by dlopen, callbacks from C into Python, errors
thrown through them, several threads, and sqlite's own loading of an extension.
"""
import os
import sqlite3
import tempfile
import threading
import unittest


class Sqlite(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.file = os.path.join(self.directory.name, "database")
        self.connection = sqlite3.connect(self.file)
        self.addCleanup(self.connection.close)
        self.connection.execute("create table numbers (number integer primary key, word text)")

    def test_version(self):
        self.assertEqual(self.connection.execute("select sqlite_version()").fetchone()[0], sqlite3.sqlite_version)

    def test_insert_and_select(self):
        self.connection.executemany("insert into numbers values (?, ?)", [(n, str(n)) for n in range(1000)])
        self.assertEqual(self.connection.execute("select sum(number) from numbers").fetchone(), (499500,))

    def test_function(self):
        self.connection.create_function("twice", 1, lambda x: 2 * x)
        self.assertEqual(self.connection.execute("select twice(21)").fetchone(), (42,))

    def test_aggregate(self):
        class Product:
            def __init__(self):
                self.value = 1

            def step(self, x):
                self.value *= x

            def finalize(self):
                return self.value

        self.connection.create_aggregate("product", 1, Product)
        self.connection.executemany("insert into numbers(number) values (?)", [(2,), (3,), (7,)])
        self.assertEqual(self.connection.execute("select product(number) from numbers").fetchone(), (42,))

    def test_collation(self):
        self.connection.executemany("insert into numbers values (?, ?)", enumerate(["b", "a", "c"]))
        self.connection.create_collation("reverse", lambda a, b: (a < b) - (a > b))
        rows = self.connection.execute("select word from numbers order by word collate reverse").fetchall()
        self.assertEqual([row[0] for row in rows], ["c", "b", "a"])

    def test_exception_in_function(self):
        def fail():
            raise ValueError("no")

        self.connection.create_function("fail", 0, fail)
        with self.assertRaises(sqlite3.OperationalError):
            self.connection.execute("select fail()")

    def test_constraint(self):
        self.connection.execute("insert into numbers values (1, 'one')")
        with self.assertRaises(sqlite3.IntegrityError):
            self.connection.execute("insert into numbers values (1, 'uno')")

    def test_rollback(self):
        self.connection.commit()
        with self.assertRaises(ZeroDivisionError), self.connection:
            self.connection.execute("insert into numbers values (1, 'one')")
            1 / 0
        self.assertEqual(self.connection.execute("select count(*) from numbers").fetchone(), (0,))

    def test_threads(self):
        self.connection.commit()
        errors = []

        def work(start):
            try:
                own = sqlite3.connect(self.file, timeout=60)
                for number in range(start, start + 20):
                    with own:
                        own.execute("insert into numbers values (?, 'x')", (number,))
                own.close()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(self.connection.execute("select count(*) from numbers").fetchone(), (80,))

    def test_backup_and_dump(self):
        self.connection.execute("insert into numbers values (1, 'one')")
        self.connection.commit()
        copy = sqlite3.connect(":memory:")
        self.addCleanup(copy.close)
        self.connection.backup(copy)
        self.assertIn("INSERT INTO \"numbers\" VALUES(1,'one');", list(copy.iterdump()))

    def test_missing_extension(self):
        if not hasattr(self.connection, "enable_load_extension"):
            self.skipTest("built without extensions")
        self.connection.enable_load_extension(True)
        with self.assertRaisesRegex(sqlite3.OperationalError, "cannot open shared object file"):
            self.connection.load_extension(os.path.join(self.directory.name, "nonesuch"))


if __name__ == "__main__":
    unittest.main()
