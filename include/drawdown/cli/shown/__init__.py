"""What commands show: tables and sentences for people, plain values for JSON."""
